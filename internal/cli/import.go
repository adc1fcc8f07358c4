package cli

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/varvedb/varve/internal/filesync"
	"github.com/varvedb/varve/internal/source"
	"github.com/varvedb/varve/internal/storeurl"
	"github.com/varvedb/varve/scaler"
	"github.com/varvedb/varve/schemas"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/feed"
)

// importCmd reads a source into a store. A command that was interrupted goes on when it is
// given again.
type importCmd struct {
	Source string `arg:"" store:"" name:"src" help:"Block tar, Arkiv SQLite database (of sqlite-store, or of sqlite-bitmap-store, which has the current state only), URL of another store, or a generated stream: mendoza:scale=0.001,seed=1, shaped like a production store, or dc:scale=0.01,seed=1,load=500, data centres with known answers and blocks of updates after them. Scale 1 is 800,000 entities and 20 million rows."`
	Dst    string `arg:"" store:"" name:"url|file.tar" help:"Store to write, such as sqlite:node.db?layout=arkiv, or block tar. A store is made when it does not exist; what it holds already is skipped, so an interrupted import can be repeated."`
	Factor uint64 `min:"1" max:"1000000" help:"How many times the entities of the source. The copies have fresh keys; half come beside the originals and half after them." default:"1"`
	Seed   uint64 `any:"" help:"With --factor: seed of the copies' keys." default:"1"`
	Batch  int    `min:"1" max:"1000000" help:"Changed entities in one transaction; with 1 each block is one." default:"5000"`
	JSON   bool   `help:"Print the result as JSON."`
}

// Run imports.
func (c *importCmd) Run(e *env) (err error) {
	src, err := source.Open(e.ctx, c.Source)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	if c.Factor > 1 {
		origin := fmt.Sprintf("%s%s, factor %d, hybrid, seed %d", scaledOrigin, driver.Redact(c.Source), c.Factor, c.Seed)
		src = &source.Source{Blocks: scaler.Scale(src.Reopen, scaler.ScaleOptions{Factor: c.Factor, Seed: c.Seed}), Origin: origin, Close: src.Close}
	}
	if isTar(c.Dst) {
		return writeTar(e, src, c.Dst)
	}
	res, err := c.fill(e, src)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(e.stdout, res)
	}
	fmt.Fprintf(e.stdout, "%d blocks, %d changes in %.1f s, %.0f changes/s; with merges and indexes %.1f s; %d blocks skipped; head %d, digest %s\n",
		res.Blocks, res.Changes, res.LoadSeconds, float64(res.Changes)/max(res.LoadSeconds, 1e-9), res.Seconds, res.Skipped, res.Head, res.Digest)
	printHorizon(e, res.Horizon)
	return nil
}

// filled is the result as printed.
type filled struct {
	Blocks      int     `json:"blocks"`
	Changes     int     `json:"changes"`
	Skipped     int     `json:"blocks_skipped"`
	Head        uint64  `json:"head"`
	Digest      string  `json:"digest"`
	Horizon     uint64  `json:"horizon,omitempty"` // oldest block of the source's history
	LoadSeconds float64 `json:"load_seconds"`      // until the last block
	Seconds     float64 `json:"seconds"`           // with merges and indexes
}

func (c *importCmd) fill(e *env, src *source.Source) (res filled, err error) {
	if _, exists := localPath(c.Dst); !exists { // checked before an empty store is left behind
		target, err := storeurl.Parse(c.Dst, nil)
		if err == nil {
			err = c.hasRoom(src, cmp.Or(target.Layout, schemas.DefaultLayout))
		}
		if err != nil {
			return res, err
		}
	}
	_, ents, end, err := e.openFed(c.Dst, store.EntityOptions{DeferIndexes: true})
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, end()) }()
	head, err := ents.Head(e.ctx)
	if err == nil {
		err = c.begin(e, ents, src, head)
	}
	if err != nil {
		return res, err
	}
	start := time.Now()
	l, took, err := load(e, src, ents, c.Batch, head, &res.Horizon)
	switch {
	case errors.Is(err, feed.ErrFormat):
		return res, err
	case err != nil:
		return res, fmt.Errorf("%w; run the same command again to go on", err)
	}
	res.Blocks, res.Changes, res.Skipped, res.Head, res.Digest = l.Blocks, l.Changes, l.Skipped, l.Head.Number, l.Head.Digest.String()
	res.LoadSeconds, res.Seconds = took.Seconds(), time.Since(start).Seconds()
	return res, nil
}

// hasRoom refuses a source for which the disk has no room in a layout.
func (c *importCmd) hasRoom(src *source.Source, layout string) error {
	path, _ := localPath(c.Dst)
	if path == "" || src.Amount == nil {
		return nil
	}
	return enoughSpace(path, diskBytes(*src.Amount, layout))
}

// begin makes sure that the store may be filled, and that there is room for it.
// An origin is recorded in an empty store, which then is filled from no other
// source.
func (c *importCmd) begin(e *env, ents *store.Entities, src *source.Source, head store.BlockHeader) error {
	has, err := ents.Origin(e.ctx)
	switch {
	case err != nil:
		return err
	case src.Origin != "" && has != "" && has != src.Origin && !source.Continues(has, src.Origin):
		return fmt.Errorf("the store holds %s, not %s; give a new one", has, src.Origin)
	case src.Origin != "" && has == "" && !head.Empty:
		return fmt.Errorf("the store holds %d blocks from elsewhere; give a new one", head.Number)
	}
	if err := c.hasRoom(src, ents.Layout()); err != nil {
		return err
	}
	if src.Origin != "" && has == "" { // the store is empty
		return ents.SetOrigin(e.ctx, src.Origin)
	}
	return nil
}

// load applies the source, with the progress that it can tell of. Took is the time until the
// last block; indexes and merges come after that.
func load(e *env, src *source.Source, ents *store.Entities, batch int, head store.BlockHeader, horizon *uint64) (l store.Applied, took time.Duration, err error) {
	start := time.Now()
	if src.From != nil {
		src.Blocks = src.From(head.Number + 1) // stored blocks are not generated again
	}
	unit, total := "blocks", int64(0)
	done := func(l store.Applied) int64 { return int64(l.Head.Number) }
	switch {
	case src.Progress != nil:
		unit = "bytes"
		_, total = src.Progress()
		done = func(store.Applied) int64 { n, _ := src.Progress(); return n }
	case src.Amount != nil:
		total = int64(src.Amount.Last)
	}
	bar := startBar(e.stderr, "import", unit, total)
	defer bar.Finish()
	if unit == "blocks" {
		bar.Begin(int64(head.Number))
	}
	opts := &store.LoadOptions{Changes: batch, Progress: func(l store.Applied) {
		bar.Set(done(l))
		took = time.Since(start)
	}}
	if src.History == nil {
		blocks := peek(src.Blocks, func(b *entity.Block) { *horizon = max(*horizon, b.Horizon) })
		l, err = ents.Load(e.ctx, blocks, opts)
	} else {
		history := peek(src.History, func(set *entity.Changeset) { *horizon = max(*horizon, set.Horizon) })
		l, err = ents.Import(e.ctx, history, opts)
	}
	return l, took, err
}

// peek shows each item of a stream to a function before it passes it on.
func peek[T any](stream iter.Seq2[T, error], see func(*T)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for item, err := range stream {
			see(&item)
			if !yield(item, err) {
				return
			}
		}
	}
}

// printHorizon says which blocks of an import cannot be read, if there are any.
func printHorizon(e *env, horizon uint64) {
	if horizon > 0 {
		fmt.Fprintf(e.stdout, "readable from block %d on: the source knows of no earlier state\n", horizon)
	}
}

// isTar reports whether a destination is a block tar rather than a store.
func isTar(dst string) bool { return strings.HasSuffix(dst, ".tar") && !source.IsURL(dst) }

// writeTar writes a source as a block tar, which appears under its name when it is complete.
func writeTar(e *env, src *source.Source, path string) error {
	n, last, horizon := 0, int64(0), uint64(0)
	if src.Amount != nil {
		if err := enoughSpace(path, src.Amount.PayloadBytes); err != nil {
			return err
		}
		last = int64(src.Amount.Last)
	}
	bar := startBar(e.stderr, "write", "blocks", last)
	err := filesync.Write(path, 0o600, func(f *os.File) error {
		return feed.NewTarWriter(f).WriteAll(e.ctx, src.Reopen(), func(b *entity.Block) {
			n++
			horizon = max(horizon, b.Horizon)
			bar.Set(int64(b.Number))
		})
	})
	bar.Finish()
	if err != nil {
		return err
	}
	fmt.Fprintf(e.stdout, "%d blocks in %s\n", n, path)
	printHorizon(e, horizon)
	return nil
}

// The size of a database on disk is estimated from the layouts whose attributes
// are rows, rather too large than too small.
const (
	rowBytes   = 80 // of a row, and of one in an index
	indexBytes = 30
	spareSpace = 256 << 20 // kept free in addition: for logs and sorting
)

func diskBytes(a source.Amount, layout string) uint64 {
	return a.PayloadBytes + uint64(float64(a.Rows)*(rowBytes+indexBytes*indexes(layout)))
}

// indexes is how many a layout has.
func indexes(layout string) float64 {
	l, err := schemas.Entities(layout, string(driver.SQLite))
	if err != nil {
		return 0 // its name was checked
	}
	return float64(len(l.Indexes))
}

// enoughSpace checks that the disk of a file has room for so many bytes. The
// file's present bytes count as room.
func enoughSpace(path string, need uint64) error {
	if st, err := os.Stat(path); err == nil && st.Mode().IsRegular() {
		need -= min(need, uint64(st.Size()))
	}
	dir := filepath.Dir(path)
	free, err := filesync.Free(dir)
	if err != nil || need+spareSpace <= free {
		return nil // where the directory is wrong, writing says how
	}
	return fmt.Errorf("%w: about %s are needed in %s and %s are free; choose a smaller scale or another disk",
		driver.ErrDiskFull, size(need+spareSpace), dir, size(free))
}

// size prints bytes for people.
func size(n uint64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
}
