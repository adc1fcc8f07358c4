//go:build !unix

package dbfile

import "os"

// OnReadOnly cannot detect read-only file systems here.
func OnReadOnly(string) bool { return false }

// MayWrite checks nothing here; the engine reports errors.
func MayWrite(string) error { return nil }

// names cannot count links here.
func names(os.FileInfo) int { return 1 }

// MayRead checks nothing here; the engine reports errors.
func MayRead(...string) error { return nil }

// OwnLike does nothing: owners are not known here.
func OwnLike(string, string) error { return nil }
