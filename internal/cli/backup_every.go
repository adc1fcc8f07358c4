package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/varvedb/varve/internal/filelease"
	"github.com/varvedb/varve/store"
)

// backupName is the time that a backup of a series is named by.
const backupName = "20060102T150405.000Z"

// repeat makes one backup after another until it is interrupted. One that fails is told
// of, and the next is made all the same.
func (c *backupCmd) repeat(e *env) (err error) {
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	if c.Dir, err = filepath.EvalSymlinks(c.Dir); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	lease, err := filelease.Take(c.Dir)
	switch {
	case err == nil:
		defer func() { err = errors.Join(err, lease.Release()) }()
	case !errors.Is(err, store.ErrUnsupported):
		return fmt.Errorf("backup: another process makes backups in %s: %w", c.Dir, err)
	}
	if err := removeUnfinished(c.Dir); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	tick := time.NewTicker(c.Every)
	defer tick.Stop()
	for {
		err := c.backup(e, filepath.Join(c.Dir, time.Now().UTC().Format(backupName)))
		if err == nil {
			err = c.thin()
		}
		if e.ctx.Err() != nil {
			return nil // what was under way is gone
		}
		if err != nil {
			fmt.Fprintln(e.stderr, err)
		}
		select {
		case <-e.ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// removeUnfinished removes what a process that was killed has left of a series: nobody
// else makes one here.
func removeUnfinished(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, entry := range entries {
		name := strings.TrimPrefix(entry.Name(), ".")
		if name == entry.Name() || !entry.IsDir() {
			continue
		}
		made, _, _ := strings.Cut(name, "-")
		if _, not := time.Parse(backupName, made); not == nil || strings.HasPrefix(name, verifyPrefix) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, entry.Name())))
		}
	}
	return err
}

// thin removes the oldest backups of a series. One loses its name first, so that what is
// left of it, should this process be killed, is not taken for a backup.
func (c *backupCmd) thin() error {
	if c.Keep == 0 {
		return nil
	}
	entries, err := os.ReadDir(c.Dir) // in the order of their names, which are times
	if err != nil {
		return err
	}
	var made []string
	for _, entry := range entries {
		if _, err := time.Parse(backupName, entry.Name()); err == nil && entry.IsDir() {
			made = append(made, entry.Name())
		}
	}
	for _, name := range made[:max(0, len(made)-c.Keep)] {
		gone := filepath.Join(c.Dir, "."+name+"-removed")
		if err := os.Rename(filepath.Join(c.Dir, name), gone); err != nil {
			return fmt.Errorf("backup: remove an old one: %w", err)
		}
		if err := os.RemoveAll(gone); err != nil {
			return fmt.Errorf("backup: remove an old one: %w", err)
		}
	}
	return nil
}
