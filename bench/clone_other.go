//go:build !linux

package bench

// flush is not to be had here: the system writes when it likes.
func flush(string) error { return nil }
