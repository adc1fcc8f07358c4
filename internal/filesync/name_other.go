//go:build !linux

package filesync

// Name renames a file or directory. It fails with fs.ErrExist if the new name
// is taken.
func Name(from, to string) error { return link(from, to) }
