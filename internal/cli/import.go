package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"
	"time"

	"github.com/varvedb/varve/internal/filesync"
	"github.com/varvedb/varve/internal/report"
	"github.com/varvedb/varve/internal/source"
	"github.com/varvedb/varve/internal/storeurl"
	"github.com/varvedb/varve/scaler"
	"github.com/varvedb/varve/schemas"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/feed"
)

// importCmd reads a source into a store or a file. Repeating the command
// continues an interrupted import, because the store knows its head.
type importCmd struct {
	Source string `arg:"" store:"" name:"src" help:"Block tar, lines of JSON, Arkiv SQLite database, URL of another store, or generated stream; see the list above."`
	Dst    string `arg:"" store:"" name:"url|file" help:"Store to write, such as sqlite:node.db?layout=arkiv, or a file that ends with .tar, .jsonl or .jsonl.zst. A store is made when it does not exist. Blocks that it has are skipped, so an interrupted import can be repeated."`
	Factor uint64 `min:"1" max:"1000000" help:"How many times the entities of the source. The copies have fresh keys; half of them live at the same time as the originals and half after them." default:"1"`
	Seed   uint64 `any:"" help:"With --factor: seed of the copies' keys." default:"1"`
	Batch  int    `min:"1" max:"1000000" help:"Changed entities in one transaction; with 1 each block is one." default:"5000"`
	JSON   bool   `help:"Print the result as JSON."`
}

// Help implements kong.HelpProvider.
func (*importCmd) Help() string {
	return `A source is one of these:

  node.tar                            block tar
  blocks.jsonl                        lines of JSON, one block each; - is standard input
                                      (varve help blocks describes them)
  arkiv.db                            SQLite database of Arkiv: of sqlite-store, or of
                                      sqlite-bitmap-store, which has only the current state
  postgres://host/db                  URL of another store
  mendoza:scale=0.001,seed=1          generated stream, shaped like a production store
  dc:scale=0.01,seed=1,load=500       generated data centres with known answers, and
                                      load blocks of updates after them

Scale 1 is 800,000 entities and 20 million rows.`
}

// imported is the result as printed.
type imported struct {
	Blocks      int     `json:"blocks"`
	Changes     int     `json:"changes"`
	Skipped     int     `json:"blocks_skipped"`
	Head        uint64  `json:"head"`
	Digest      string  `json:"digest"`
	Horizon     uint64  `json:"horizon,omitempty"` // oldest block of the source's history
	LoadSeconds float64 `json:"load_seconds"`      // until the last block
	Seconds     float64 `json:"seconds"`           // with merges and indexes
}

// Run imports.
func (c *importCmd) Run(e *env) (err error) {
	src, err := source.Open(e.ctx, c.Source)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	if c.Factor > 1 {
		src = &source.Source{
			Blocks: scaler.Scale(src.Reopen, scaler.ScaleOptions{Factor: c.Factor, Seed: c.Seed}),
			Origin: fmt.Sprintf("%s%s, factor %d, hybrid, seed %d", scaledOrigin, driver.Redact(c.Source), c.Factor, c.Seed),
			Close:  src.Close,
		}
	}
	if isFile(c.Dst) {
		return writeFile(e, src, c.Dst)
	}
	res, err := c.fill(e, src)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(e.stdout, res)
	}
	rows := ""
	if src.Amount != nil && uint64(res.Blocks) == src.Amount.Blocks { // all of it, and not a rest
		rows = fmt.Sprintf(", %s rows", report.Number(float64(src.Amount.Rows)))
	}
	fmt.Fprintf(e.stdout, "%s with %s of entities%s in %.1f s, %s changes/s; with merges and indexes %.1f s; %s skipped; head %d, digest %s\n",
		report.Plural(res.Blocks, "block"), report.Plural(res.Changes, "change"), rows, res.LoadSeconds,
		report.Number(float64(res.Changes)/max(res.LoadSeconds, 1e-9)), res.Seconds, report.Plural(res.Skipped, "block"), res.Head, res.Digest)
	printHorizon(e, res.Horizon)
	return nil
}

// fill loads a source into the store and closes the store.
func (c *importCmd) fill(e *env, src *source.Source) (res imported, err error) {
	// Check that the disk has room before a store is created, because an import
	// that is refused must not leave an empty one.
	if _, exists := localPath(c.Dst); !exists {
		target, err := storeurl.Parse(c.Dst, nil)
		if err == nil {
			err = c.hasRoom(src, cmp.Or(target.Layout, schemas.DefaultLayout))
		}
		if err != nil {
			return res, err
		}
	}

	// Open the store with its lease, without the indexes that only queries need.
	_, ents, end, err := e.openForBlocks(c.Dst, store.EntityOptions{DeferIndexes: true})
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, end()) }()

	// Refuse a store that was filled from another source, because its blocks
	// would be continued as if both were one chain.
	head, err := ents.Head(e.ctx)
	if err != nil {
		return res, err
	}
	has, err := ents.Origin(e.ctx)
	switch {
	case err != nil:
		return res, err
	case src.Origin == "":
	case has != "" && has != src.Origin && !source.Continues(has, src.Origin):
		return res, fmt.Errorf("the store holds %s, not %s; give a new one", has, src.Origin)
	case has == "" && !head.Empty:
		return res, fmt.Errorf("the store holds %d blocks from elsewhere; give a new one", head.Number)
	}
	if err := c.hasRoom(src, ents.Layout()); err != nil {
		return res, err
	}
	if src.Origin != "" && has == "" {
		if err := ents.SetOrigin(e.ctx, src.Origin); err != nil {
			return res, err
		}
	}

	// A generated stream starts after the head, because the blocks before need
	// not be generated again.
	if src.From != nil {
		src.Blocks = src.From(head.Number + 1)
	}

	src = src.Ahead()

	// Report progress in bytes of the source if they are known, otherwise in
	// blocks.
	bar, done := importBar(e, src, head)

	// Load the blocks. After the last one, Load and Import merge and build
	// indexes.
	start := time.Now()
	opts := &store.LoadOptions{Changes: c.Batch, Progress: func(l store.Applied) {
		bar.Set(done(l))
		res.LoadSeconds = time.Since(start).Seconds()
	}}
	var l store.Applied
	if src.History == nil {
		blocks := peek(src.Blocks, func(b *entity.Block) { res.Horizon = max(res.Horizon, b.Horizon) })
		l, err = ents.Load(e.ctx, blocks, opts)
	} else {
		history := peek(src.History, func(set *entity.Changeset) { res.Horizon = max(res.Horizon, set.Horizon) })
		l, err = ents.Import(e.ctx, history, opts)
	}
	bar.Finish()
	switch {
	case errors.Is(err, feed.ErrFormat):
		return res, err
	case err != nil:
		return res, fmt.Errorf("%w; run the same command again to go on", err)
	}
	res.Blocks, res.Changes, res.Skipped = l.Blocks, l.Changes, l.Skipped
	res.Head, res.Digest = l.Head.Number, l.Head.Digest.String()
	res.Seconds = time.Since(start).Seconds()
	return res, nil
}

// hasRoom returns an error if the disk has no room for a source in a layout.
func (c *importCmd) hasRoom(src *source.Source, layout string) error {
	path, _ := localPath(c.Dst)
	if path == "" || src.Amount == nil {
		return nil
	}
	return enoughSpace(path, diskBytes(*src.Amount, layout))
}

// importBar starts a progress report, and returns a function that gives the
// progress in the report's units.
func importBar(e *env, src *source.Source, head store.BlockHeader) (*progressBar, func(store.Applied) int64) {
	if src.Progress != nil {
		_, total := src.Progress()
		bar := startBar(e.stderr, "import", "bytes", total)
		return bar, func(store.Applied) int64 { n, _ := src.Progress(); return n }
	}
	total := int64(0)
	if src.Amount != nil {
		total = int64(src.Amount.Last)
	}
	bar := startBar(e.stderr, "import", "blocks", total)
	bar.Begin(int64(head.Number))
	return bar, func(l store.Applied) int64 { return int64(l.Head.Number) }
}

// peek passes each item of a stream to a function before it yields the item.
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

// printHorizon prints the first readable block of an import, if that is not the
// first block.
func printHorizon(e *env, horizon uint64) {
	if horizon > 0 {
		fmt.Fprintf(e.stdout, "readable from block %d on: the source knows of no earlier state\n", horizon)
	}
}

// isFile reports whether a destination is a file of blocks rather than a store.
func isFile(dst string) bool {
	return !source.IsURL(dst) && (strings.HasSuffix(dst, ".tar") || isLines(dst))
}

// isLines reports whether a file of blocks has JSON lines.
func isLines(dst string) bool { return strings.HasSuffix(strings.TrimSuffix(dst, ".zst"), ".jsonl") }

// writeFile writes a source as a block tar or as JSON lines. The file appears
// under its name only when it is complete.
func writeFile(e *env, src *source.Source, path string) error {
	n, last, horizon := 0, int64(0), uint64(0)
	if src.Amount != nil {
		if err := enoughSpace(path, src.Amount.PayloadBytes); err != nil {
			return err
		}
		last = int64(src.Amount.Last)
	}
	bar := startBar(e.stderr, "write", "blocks", last)
	wrote := func(b *entity.Block) {
		n++
		horizon = max(horizon, b.Horizon)
		bar.Set(int64(b.Number))
	}
	var err error
	if isLines(path) {
		err = writeText(path, func(w io.Writer) error { return feed.WriteLines(e.ctx, w, src.Reopen(), wrote) })
	} else {
		err = filesync.Write(path, 0o600, func(f *os.File) error { return feed.NewTarWriter(f).WriteAll(e.ctx, src.Reopen(), wrote) })
	}
	bar.Finish()
	if err != nil {
		return err
	}
	fmt.Fprintf(e.stdout, "%s in %s\n", report.Plural(n, "block"), path)
	printHorizon(e, horizon)
	return nil
}
