//go:build !linux

package filesync

import "os"

// Data makes a file's content durable.
func Data(f *os.File) error { return f.Sync() }

// ReadAhead does nothing here: only Linux has a call for it.
func ReadAhead(*os.File, int64, int64) {}

// RandomAccess does nothing.
func RandomAccess(int, bool) {}

// Descriptors returns none.
func Descriptors(*os.File) []int { return nil }
