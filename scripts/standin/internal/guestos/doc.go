// Package guestos is the thin layer between the stand-in and its Linux kernel:
// modules, mounts, devices, the network card, the power button and the console.
//
// What it does can't be tested without a machine, so it decides nothing; it
// must not import anything of ours but volume.
package guestos
