package fake_test

import (
	"testing"

	"github.com/wbox-dev/wbox/builder/guest"
	"github.com/wbox-dev/wbox/builder/guest/fake"
	"github.com/wbox-dev/wbox/builder/guest/guesttest"
)

func TestConformance(t *testing.T) {
	guesttest.Run(t, func(_ *testing.T, b guesttest.Behaviour) guest.Conn {
		return &fake.Conn{Handler: fake.Handler(b.Handler), Refuse: b.WrongPassword, Cut: b.Cut, Freeze: b.Freeze, Timeout: b.Bound}
	})
}
