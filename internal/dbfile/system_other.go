//go:build !unix

package dbfile

import "os"

// OnReadOnly does not know read-only file systems here.
func OnReadOnly(string) bool { return false }

// MayWrite leaves it to the engine to say.
func MayWrite(string) error { return nil }

// names does not know links here.
func names(os.FileInfo) int { return 1 }

// MayRead leaves it to the engine to say.
func MayRead(...string) error { return nil }

// OwnLike does not know owners here.
func OwnLike(string, string) error { return nil }
