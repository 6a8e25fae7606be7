// Package fault classifies errors. Every error that a user can do something
// about is a *Problem: it names the field, its value, what is wrong and what to
// do, and its class decides the exit code. It is a leaf: it imports nothing of
// ours.
package fault

import (
	"context"
	"errors"
	"strings"
)

// Class groups errors by who can mend them; its number is the exit code.
type Class int

// The classes and with them the documented exit codes of wbox.
const (
	Failed      Class = 1   // anything else
	Usage       Class = 2   // wrong use, invalid configuration, foreign files in the output folder
	Input       Class = 3   // an input was not found or was refused (version, ISO, checksum, licence)
	Host        Class = 4   // this machine lacks something (a program, disk, memory, acceleration)
	Guest       Class = 5   // the guest or its proof failed
	Busy        Class = 6   // another build holds it
	Network     Class = 7   // the network, or a server on it
	Interrupted Class = 130 // the user pressed Ctrl-C
)

// Problem is an error that says what to do.
type Problem struct {
	Class Class
	Field string // the flag, file or setting it is about, such as "--iso"
	Value string // the value that was given or found
	Why   string // what is wrong with it
	Fix   string // what to do about it; empty only where nothing can be done
	Err   error  // the cause, where there is one; its text is printed after Why
}

func (p *Problem) Error() string {
	var b strings.Builder
	b.WriteString(p.Field)
	if p.Value != "" {
		if p.Field != "" {
			b.WriteByte(' ')
		}
		b.WriteString(p.Value)
	}
	if p.Why != "" {
		if b.Len() > 0 {
			b.WriteString(": ")
		}
		b.WriteString(p.Why)
	}
	if p.Err != nil {
		if b.Len() > 0 {
			b.WriteString(": ")
		}
		b.WriteString(p.Err.Error())
	}
	if p.Fix != "" {
		b.WriteString("; " + p.Fix)
	}
	return b.String()
}

// Unwrap returns the cause.
func (p *Problem) Unwrap() error { return p.Err }

// Preflight is everything that was found wrong with a request before anything
// was started.
type Preflight struct {
	Errs []error // in a stable order; at least one
}

// Check returns a *Preflight of the errors that are not nil, flattened, or nil
// where there are none.
func Check(errs ...error) error {
	var p Preflight
	for _, e := range errs {
		p.add(e)
	}
	if len(p.Errs) == 0 {
		return nil
	}
	return &p
}

func (p *Preflight) add(err error) {
	if err == nil {
		return
	}
	if j, ok := err.(interface{ Unwrap() []error }); ok { //nolint:errorlint // joins are taken apart by hand
		for _, e := range j.Unwrap() {
			p.add(e)
		}
		return
	}
	p.Errs = append(p.Errs, err)
}

func (p *Preflight) Error() string { return errors.Join(p.Errs...).Error() }

// Unwrap returns all errors.
func (p *Preflight) Unwrap() []error { return p.Errs }

// Class is that of the error with the smallest number.
func (p *Preflight) Class() Class {
	c := ClassOf(p.Errs[0])
	for _, e := range p.Errs[1:] {
		c = min(c, ClassOf(e))
	}
	return c
}

// ClassOf returns the class of err: that of a Preflight, else that of the first
// Problem in its tree,
// Interrupted for a cancelled context, else Failed. ClassOf(nil) is 0.
func ClassOf(err error) Class {
	var p *Problem
	var pre *Preflight
	switch {
	case err == nil:
		return 0
	case errors.As(err, &pre):
		return pre.Class()
	case errors.As(err, &p):
		return p.Class
	case errors.Is(err, context.Canceled):
		return Interrupted
	}
	return Failed
}

// All returns every Problem in err's tree, joined errors included, in order.
func All(err error) []*Problem {
	if err == nil {
		return nil
	}
	if p, ok := err.(*Problem); ok { //nolint:errorlint // the tree is walked by hand
		return []*Problem{p}
	}
	var out []*Problem
	switch u := err.(type) { //nolint:errorlint // the tree is walked by hand
	case interface{ Unwrap() []error }:
		for _, e := range u.Unwrap() {
			out = append(out, All(e)...)
		}
	case interface{ Unwrap() error }:
		out = All(u.Unwrap())
	}
	return out
}
