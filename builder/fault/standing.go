package fault

import "errors"

// Standing is a failure after which something was kept for the user, who ended
// that, by Ctrl-C for instance. How the program ends is still the failure: the
// interruption came later and only let go of what was kept.
type Standing struct{ Err error }

func (s *Standing) Error() string { return s.Err.Error() }

// Unwrap returns the failure.
func (s *Standing) Unwrap() error { return s.Err }

// Stands says whether err is, or wraps, a failure that stands.
func Stands(err error) bool {
	var s *Standing
	return errors.As(err, &s)
}
