package winrmd

import (
	"testing"
	"time"
)

func FuzzParseEnvelope(f *testing.F) {
	f.Add([]byte(`<s:Envelope xmlns:s="http://www.w3.org/2003/05/soap-envelope"><s:Header><OperationTimeout>PT20S</OperationTimeout></s:Header><s:Body><Send><Stream Name="stdin" End="true">aGk=</Stream></Send></s:Body></s:Envelope>`))
	f.Add([]byte(`<Envelope><Body><Receive/></Body></Envelope>`))
	f.Add([]byte(`<`))
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := parseEnvelope(data)
		if err != nil {
			return
		}
		if d := e.timeout(); d <= 0 || d > time.Minute {
			t.Errorf("timeout %v is out of bounds", d)
		}
	})
}

func FuzzNTLM(f *testing.F) {
	c := newChallenge(nil, "X")
	f.Add([]byte(ntlmSignature + "\x03\x00\x00\x00"))
	f.Add(c.message)
	f.Fuzz(func(t *testing.T, data []byte) {
		ch := newChallenge(data, "WIN")
		if _, _, err := ch.verify(data, func(string) (string, bool) { return "unguessable", true }); err == nil {
			t.Error("a made-up message logged on")
		}
	})
}

func TestSealRoundTrip(t *testing.T) {
	key := []byte("0123456789abcdef")
	for name, flags := range map[string]uint32{"128 bit": flag128 | flagKeyExchange, "56 bit": flag56, "40 bit": 0} {
		t.Run(name, func(t *testing.T) {
			server, _ := newSession(key, flags)
			client, _ := newSession(key, flags)
			client.in, client.out, client.inSign, client.outSign = client.out, client.in, client.outSign, client.inSign
			for _, text := range []string{"first", "", "second --Encrypted Boundary--\r\n inside"} {
				body := client.seal([]byte(text))
				got, err := server.open(body)
				if err != nil || string(got) != text {
					t.Fatalf("open: %q, %v", got, err)
				}
				if text != "" {
					if _, err := server.open(body); err == nil {
						t.Fatal("a replayed message was taken")
					}
					// The failed attempt moved the key stream, as it does for real:
					// the connection is of no use any more.
					server, _ = newSession(key, flags)
					client, _ = newSession(key, flags)
					client.in, client.out, client.inSign, client.outSign = client.out, client.in, client.outSign, client.inSign
				}
			}
		})
	}
}
