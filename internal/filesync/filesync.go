// Package filesync makes files durable, and tells the room for them, where package os
// stops short.
package filesync

import (
	"errors"
	"os"
)

// Dir makes the entries of a directory durable: the names of new files, and that of
// one that was renamed.
func Dir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Replace writes a file anew, whole or not at all.
func Replace(path string, text []byte) error {
	f, err := os.Create(path + ".tmp")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
