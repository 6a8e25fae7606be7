package images_test

import (
	"testing"

	"github.com/wbox-dev/wbox/images"
	"github.com/wbox-dev/wbox/images/cachetest"
)

func TestTheCacheOfTests(t *testing.T) {
	cachetest.Run(t, func(*testing.T) images.Cache { return images.NewMemCache() })
}
