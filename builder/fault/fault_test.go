package fault

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

func TestProblemSaysFieldValueWhyAndFix(t *testing.T) {
	for want, p := range map[string]*Problem{
		"--iso a.iso: is empty; download it again": {Field: "--iso", Value: "a.iso", Why: "is empty", Fix: "download it again"},
		"--k8s: is required":                       {Field: "--k8s", Why: "is required"},
		"too old":                                  {Why: "too old"},
		"-o x: is not writable: denied; go away":   {Field: "-o", Value: "x", Why: "is not writable", Err: errors.New("denied"), Fix: "go away"},
		"the guest went away; see the logs":        {Err: errors.New("the guest went away"), Fix: "see the logs"},
	} {
		if got := p.Error(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestClassOf(t *testing.T) {
	input, host := &Problem{Class: Input}, &Problem{Class: Host}
	for _, c := range []struct {
		err  error
		want Class
	}{
		{nil, 0},
		{errors.New("x"), Failed},
		{fmt.Errorf("deep: %w", fmt.Errorf("deeper: %w", host)), Host},
		{fmt.Errorf("stopping: %w", context.Canceled), Interrupted},
		{Check(nil, host, nil, input), Input},
		{fmt.Errorf("again: %w", Check(host)), Host},
		{Check(errors.New("plain"), host), Failed},
	} {
		if got := ClassOf(c.err); got != c.want {
			t.Errorf("%v: %d, want %d", c.err, got, c.want)
		}
	}
}

func TestCheckFlattensAndKeepsOrder(t *testing.T) {
	if Check(nil, nil) != nil {
		t.Error("no errors make an error")
	}
	a, b, c := errors.New("a"), errors.New("b"), errors.New("c")
	err := Check(errors.Join(a, errors.Join(b)), nil, Check(c))
	var p *Preflight
	if !errors.As(err, &p) || len(p.Errs) != 3 || p.Errs[0] != a || p.Errs[1] != b || p.Errs[2] != c {
		t.Errorf("%#v", err)
	}
	if !errors.Is(err, b) {
		t.Error("a cause is not found")
	}
}

func TestAll(t *testing.T) {
	p, q := &Problem{Why: "p"}, &Problem{Why: "q", Err: errors.New("x")}
	got := All(fmt.Errorf("w: %w", errors.Join(errors.New("plain"), p, fmt.Errorf("v: %w", q))))
	if len(got) != 2 || got[0] != p || got[1] != q {
		t.Errorf("%v", got)
	}
}

func TestStanding(t *testing.T) {
	p := &Problem{Class: Guest, Why: "the guest failed"}
	err := fmt.Errorf("baking: %w", &Standing{p})
	if !Stands(err) || Stands(p) || Stands(nil) || ClassOf(err) != Guest || err.Error() != "baking: the guest failed" {
		t.Errorf("got %v of class %d", err, ClassOf(err))
	}
}
