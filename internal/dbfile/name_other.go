//go:build !linux

package dbfile

// name gives a file another name, unless that is taken.
func name(from, to string) error { return link(from, to) }
