package cas

import "os"

// syncFile does nothing: FlushFileBuffers wants a handle opened for writing,
// and the results are sealed by the time they are flushed; their writers flush.
func syncFile(*os.File) error { return nil }
