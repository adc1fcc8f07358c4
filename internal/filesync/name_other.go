//go:build !linux

package filesync

// Name gives a file or directory another name, unless that is taken, which is
// fs.ErrExist.
func Name(from, to string) error { return link(from, to) }
