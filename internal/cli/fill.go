package cli

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/varvedb/varve/internal/filesync"
	"github.com/varvedb/varve/internal/source"
	"github.com/varvedb/varve/schemas"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/feed"
)

// importCmd reads a source into a store.
type importCmd struct {
	Source string `arg:"" store:"" name:"src" help:"Block tar, Arkiv SQLite database (of sqlite-store, or of sqlite-bitmap-store, which has the current state only), URL of another store, or a generated stream such as dc:scale=0.01,load=500."`
	URL    string `arg:"" store:"" name:"url" help:"Store to write, such as sqlite:node.db?layout=arkiv. It is made when it does not exist; what it holds already is skipped, so an interrupted import can be repeated."`
	Batch  int    `min:"1" max:"1000000" help:"Changed entities in one transaction; with 1 each block is one." default:"1000"`
	JSON   bool   `help:"Print the result as JSON."`
}

// Run imports.
func (c *importCmd) Run(e *env) (err error) {
	src, err := openSource(e.ctx, c.Source)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	return (&filling{name: "import", url: c.URL, batch: c.Batch, json: c.JSON}).run(e, src)
}

// openSource opens what a command is given to read blocks from.
func openSource(ctx context.Context, src string) (*source.Source, error) {
	s, err := source.Open(ctx, src)
	if errors.As(err, new(source.UsageError)) {
		err = usageError{err}
	}
	return s, err
}

// filling is how import, seed and scale fill a store. A command that was interrupted goes on
// when it is given again.
type filling struct {
	name   string // of the command
	url    string
	batch  int
	json   bool
	origin string         // what the store is begun as, whose indexes are made at the end; "" is anything
	amount *source.Amount // of the source; nil when it is not known

	// after, if not nil, gives the blocks from a number on, so that those which the store has
	// are not made again.
	after func(block uint64) (iter.Seq2[entity.Block, error], error)
}

// filled is the result as printed.
type filled struct {
	Blocks      int     `json:"blocks"`
	Changes     int     `json:"changes"`
	Skipped     int     `json:"blocks_skipped"`
	Head        uint64  `json:"head"`
	Digest      string  `json:"digest"`
	Horizon     uint64  `json:"horizon,omitempty"` // oldest block of which the source can tell
	LoadSeconds float64 `json:"load_seconds"`      // until the last block
	Seconds     float64 `json:"seconds"`           // with merges and indexes
}

func (f *filling) run(e *env, src *source.Source) error {
	res, err := f.fill(e, src)
	if err != nil {
		return err
	}
	if f.json {
		return printJSON(e.stdout, res)
	}
	fmt.Fprintf(e.stdout, "%d blocks, %d changes in %.1f s, %.0f changes/s; with merges and indexes %.1f s; %d blocks skipped; head %d, digest %s\n",
		res.Blocks, res.Changes, res.LoadSeconds, float64(res.Changes)/max(res.LoadSeconds, 1e-9), res.Seconds, res.Skipped, res.Head, res.Digest)
	if res.Horizon > 0 {
		fmt.Fprintf(e.stdout, "readable from block %d on: the source knows of no earlier state\n", res.Horizon)
	}
	return nil
}

func (f *filling) fill(e *env, src *source.Source) (res filled, err error) {
	_, ents, end, err := e.openFed(f.url, store.EntityOptions{DeferIndexes: f.origin != ""})
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, end()) }()
	head, err := f.begin(e, ents)
	if err != nil {
		return res, err
	}
	if f.after != nil {
		blocks, err := f.after(head.Number + 1)
		if err != nil {
			return res, err
		}
		src = &source.Source{Blocks: blocks}
	}
	start := time.Now()
	l, took, err := f.load(e, src, ents, head, &res.Horizon)
	if err != nil {
		return res, fmt.Errorf("%w; the same command goes on", err)
	}
	res.Blocks, res.Changes, res.Skipped, res.Head, res.Digest = l.Blocks, l.Changes, l.Skipped, l.Head.Number, l.Head.Digest.String()
	res.LoadSeconds, res.Seconds = took.Seconds(), time.Since(start).Seconds()
	return res, nil
}

// begin makes sure that the store may be filled, and that there is room for it. What has an
// origin fills a store that is empty or was begun from the same, and records that.
func (f *filling) begin(e *env, ents *store.Entities) (head store.BlockHeader, err error) {
	if head, err = ents.Head(e.ctx); err != nil || f.origin == "" {
		return head, err
	}
	has, err := ents.Origin(e.ctx)
	switch {
	case err != nil:
		return head, err
	case has == "" && !head.Empty:
		return head, fmt.Errorf("%w: the store holds %d blocks from elsewhere; give an empty one", store.ErrHistory, head.Number)
	case has != "" && has != f.origin:
		return head, fmt.Errorf("%w: the store was begun as %s, not as %s", store.ErrHistory, has, f.origin)
	}
	if path, _ := localPath(f.url); path != "" && f.amount != nil {
		if err := enoughSpace(path, diskBytes(*f.amount, ents.Layout())); err != nil {
			return head, err
		}
	}
	if has == "" {
		err = ents.SetOrigin(e.ctx, f.origin)
	}
	return head, err
}

// load applies the source, with the progress that it can tell of. Took is the time until the
// last block; indexes and merges come after that.
func (f *filling) load(e *env, src *source.Source, ents *store.Entities, head store.BlockHeader, horizon *uint64) (l store.Applied, took time.Duration, err error) {
	start := time.Now()
	unit, total := "blocks", int64(0)
	done := func(l store.Applied) int64 { return int64(l.Head.Number) }
	switch {
	case src.Progress != nil:
		unit = "bytes"
		_, total = src.Progress()
		done = func(store.Applied) int64 { n, _ := src.Progress(); return n }
	case f.amount != nil:
		total = int64(f.amount.Last)
	}
	bar := startBar(e.stderr, f.name, unit, total)
	defer bar.Finish()
	if unit == "blocks" {
		bar.Begin(int64(head.Number))
	}
	opts := &store.LoadOptions{Changes: f.batch, Progress: func(l store.Applied) {
		bar.Set(done(l))
		took = time.Since(start)
	}}
	if src.History == nil {
		l, err = ents.Load(e.ctx, src.Blocks, opts)
	} else {
		l, err = ents.Import(e.ctx, observeHorizon(src.History, horizon), opts)
	}
	return l, took, err
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

// isTar tells whether a destination is a block tar rather than a store.
func isTar(dst string) bool { return strings.HasSuffix(dst, ".tar") && !source.IsURL(dst) }

// writeTar writes a stream, of whose blocks the last one may be known, as a block tar, which
// appears under its name when it is complete.
func writeTar(e *env, blocks iter.Seq2[entity.Block, error], path string, last uint64) error {
	n := 0
	bar := startBar(e.stderr, "write", "blocks", int64(last))
	err := filesync.Write(path, 0o600, func(f *os.File) error {
		return feed.NewTarWriter(f).WriteAll(e.ctx, blocks, func(b *entity.Block) {
			n++
			bar.Set(int64(b.Number))
		})
	})
	bar.Finish()
	if err == nil {
		_, err = fmt.Fprintf(e.stdout, "%d blocks in %s\n", n, path)
	}
	return err
}

// What a database takes on disk is guessed from the layouts whose attributes are rows, rather
// too much than too little.
const (
	rowBytes   = 80 // of a row, and of one in an index
	indexBytes = 30
	spareSpace = 256 << 20 // is kept free beside: for logs and sorting
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

// enoughSpace checks that the disk of a file has room for so many bytes, of which it may have
// some already.
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
