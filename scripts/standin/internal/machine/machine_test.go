package machine

import "testing"

func TestAttributesAsText(t *testing.T) {
	for text, want := range map[string]Attributes{
		"0":                    0,
		"0xd000000000000000":   NoDriveLetter | Hidden | ReadOnly,
		"10376293541461622784": NoDriveLetter | ReadOnly,
		"-8070450532247928832": NoDriveLetter | ReadOnly, // the same bits as a signed number
	} {
		var a Attributes
		if err := a.UnmarshalText([]byte(text)); err != nil || a != want {
			t.Errorf("%s: %#x, %v; want %#x", text, uint64(a), err, uint64(want))
		}
		again, err := a.MarshalText()
		var b Attributes
		if err != nil || b.UnmarshalText(again) != nil || a != b {
			t.Errorf("%s became %s", text, again)
		}
	}
	for _, text := range []string{"", "hidden", "0x1ffffffffffffffff", "-99999999999999999999"} {
		var a Attributes
		if a.UnmarshalText([]byte(text)) == nil {
			t.Errorf("%q was taken as %#x", text, uint64(a))
		}
	}
}
