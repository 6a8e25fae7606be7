//go:build !linux

package main

import "errors"

func canMount() bool { return false }

func mountSmall(string, string) error { return errors.ErrUnsupported }

func unmount(string) {}
