// Package standin holds the tests of the stand-in guest as a whole: they boot
// its medium on the machine that the QEMU driver makes for Windows, and talk to
// it with the client that talks to Windows.
//
// The programs are in cmd, their parts in internal, what makes the medium in
// media; README.md says what a stand-in proves and what not. It must not be
// imported.
package standin
