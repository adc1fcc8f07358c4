package cli

import (
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/varvedb/varve/internal/progress"
	"github.com/varvedb/varve/internal/source"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
)

// importCmd reads a source into a store.
type importCmd struct {
	Source string `arg:"" store:"" name:"src" help:"Block tar, Arkiv SQLite database (of sqlite-store, or of sqlite-bitmap-store, which has the current state only), or URL of another store."`
	URL    string `arg:"" store:"" name:"url" help:"Store to write, such as sqlite:node.db?layout=arkiv. It is made when it does not exist; what it holds already is skipped, so an interrupted import can be repeated."`
	Batch  int    `min:"1" max:"1000000" help:"Changed entities in one transaction." default:"1000"`
	JSON   bool   `help:"Print the result as JSON."`
}

// imported is the result as printed.
type imported struct {
	Blocks  int     `json:"blocks"`
	Changes int     `json:"changes"`
	Skipped int     `json:"blocks_skipped"`
	Head    uint64  `json:"head"`
	Digest  string  `json:"digest"`
	Horizon uint64  `json:"horizon,omitempty"` // oldest block of which the source can tell
	Seconds float64 `json:"seconds"`
}

// Run imports.
func (c *importCmd) Run(e *env) (err error) {
	src, err := openSource(e.ctx, c.Source)
	if err != nil {
		return fmt.Errorf("import: %w", err)
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	ents, end, err := e.openFed(c.URL, store.EntityOptions{})
	if err != nil {
		return fmt.Errorf("import: %w", err)
	}
	defer func() { err = errors.Join(err, end()) }()
	start := time.Now()
	var horizon uint64
	if src.History != nil {
		src.History = observeHorizon(src.History, &horizon)
	}
	loaded, err := c.load(e, src, ents)
	if err != nil {
		return fmt.Errorf("import %s: %w", driver.Redact(c.Source), err)
	}
	result := imported{
		Blocks: loaded.Blocks, Changes: loaded.Changes, Skipped: loaded.Skipped,
		Head: loaded.Head.Block, Digest: loaded.Head.Digest.String(), Horizon: horizon, Seconds: time.Since(start).Seconds(),
	}
	if c.JSON {
		return printJSON(e.stdout, result)
	}
	fmt.Fprintf(e.stdout, "%d blocks, %d changes in %.1f s; %d blocks skipped; head %d, digest %s\n",
		result.Blocks, result.Changes, result.Seconds, result.Skipped, result.Head, result.Digest)
	if horizon > 0 {
		fmt.Fprintf(e.stdout, "readable from block %d on: the source knows of no earlier state\n", horizon)
	}
	return nil
}

// observeHorizon sets horizon to what the first changeset says of it.
func observeHorizon(history iter.Seq2[entity.Changeset, error], horizon *uint64) iter.Seq2[entity.Changeset, error] {
	return func(yield func(entity.Changeset, error) bool) {
		for set, err := range history {
			*horizon = max(*horizon, set.Horizon)
			if !yield(set, err) {
				return
			}
		}
	}
}

func (c *importCmd) load(e *env, src *source.Source, ents *store.Entities) (store.Loaded, error) {
	opts := store.LoadOptions{Changes: c.Batch}
	if src.Blocks == nil {
		bar := progress.Start(e.stderr, "import", "changes", 0)
		defer bar.Finish()
		opts.Progress = func(l store.Loaded) { bar.Set(int64(l.Changes)) }
		return ents.Import(e.ctx, src.History, opts)
	}
	if src.Progress == nil {
		bar := progress.Start(e.stderr, "import", "changes", 0)
		defer bar.Finish()
		opts.Progress = func(l store.Loaded) { bar.Set(int64(l.Changes)) }
		return ents.Load(e.ctx, src.Blocks, opts)
	}
	_, total := src.Progress()
	bar := progress.Start(e.stderr, "import", "bytes", total)
	defer bar.Finish()
	opts.Progress = func(store.Loaded) {
		done, _ := src.Progress()
		bar.Set(done)
	}
	return ents.Load(e.ctx, src.Blocks, opts)
}
