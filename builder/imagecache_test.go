package builder

import (
	"testing"

	"github.com/wbox-dev/wbox/images"
	"github.com/wbox-dev/wbox/images/cachetest"
)

func TestImageCache(t *testing.T) {
	cachetest.Run(t, func(t *testing.T) images.Cache {
		c, err := OpenCache(t.TempDir(), nil)
		if err != nil {
			t.Fatal(err)
		}
		return c.Images()
	})
}
