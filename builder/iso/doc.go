// Package iso reads installation media and writes seeds, without mounting
// anything, without root and without another program.
//
// Open gives the files of an image (image.go; UDF in udf*.go, ISO 9660 and
// Joliet in iso9660.go); Inspect says which editions of Windows are in it
// (inspect.go, wim.go, select.go); WriteSeed makes the small CD on which
// scripts and payload reach a guest (seed*.go).
//
// Images are foreign bytes: whatever they hold, reading them neither panics nor
// loops nor allocates more than the limits below. The package must not import
// another capability, a stage or the specification.
package iso

// Limits on what is believed of an image, far above what real media have.
const (
	sectorSize    = 2048
	maxFolderSize = 16 << 20 // bytes of one folder's own data
	maxExtents    = 1 << 16  // pieces of one file; a piece has up to 1 GiB
	maxDepth      = 64       // folders in a path
	maxXML        = 4 << 20  // bytes of a WIM's XML; an edition takes some KiB
	maxStandIn    = 64 << 10 // bytes of the stand-in's description
)
