package images

// NewMemCache is the cache of this package's tests.
func NewMemCache() Cache { return newMemCache() }
