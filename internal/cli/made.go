package cli

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/varvedb/varve/internal/dbfile"
	"github.com/varvedb/varve/internal/source"
	"github.com/varvedb/varve/store"
)

// missing returns those of the stores that a command is given that are files or directories
// and do not exist yet.
func missing(urls []string) (list []string) {
	for _, url := range urls {
		if !source.IsURL(url) {
			continue
		}
		if path, exists := localPath(url); path != "" && !exists {
			list = append(list, url)
		}
	}
	return list
}

// takeBack removes the stores that a command has made which failed before anything was in
// them, so that the next one may make them otherwise.
func takeBack(urls []string) error {
	var errs []error
	for _, url := range urls {
		path, exists := localPath(url)
		if !exists {
			continue
		}
		if empty, err := isEmpty(context.Background(), url); err == nil && empty {
			errs = append(errs, dbfile.Remove(path))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("remove the store that was made: %w", err)
	}
	return nil
}

// isEmpty tells whether a store has neither a block nor an event, and nobody feeds or serves
// it.
func isEmpty(ctx context.Context, url string) (empty bool, err error) {
	if path, _ := localPath(url); exists(path + "-lease") {
		return false, nil
	}
	db, err := store.Open(ctx, url, readOnly)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	ents, err := db.Entities(ctx, &store.EntityOptions{DeferIndexes: true})
	if err == nil {
		head, err := ents.Head(ctx)
		if err != nil || !head.Empty {
			return false, err
		}
	} else if !errors.Is(err, store.ErrLayout) {
		return false, err
	}
	evs, err := db.Events(ctx, nil)
	if errors.Is(err, store.ErrLayout) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	head, err := evs.Head(ctx)
	return err == nil && head == 0, err
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
