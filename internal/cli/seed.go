package cli

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"time"

	"github.com/varvedb/varve/internal/filesync"
	"github.com/varvedb/varve/internal/progress"
	"github.com/varvedb/varve/internal/source"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/feed"
)

// seedCmd generates a database or a block tar.
type seedCmd struct {
	Model  string  `arg:"" enum:"mendoza,dc" help:"What to generate: mendoza, shaped like a production store, or dc, data centres with known answers."`
	Dst    string  `arg:"" store:"" name:"url|file.tar" help:"Store to fill, or block tar to write."`
	Scale  float64 `above:"0" max:"100" help:"Size; 1 is 800,000 entities and 20 million rows." default:"0.001"`
	Seed   uint64  `any:"" help:"The same seed gives the same data everywhere." default:"1"`
	Load   uint64  `min:"0" max:"1000000000" help:"Of dc: blocks of updates after the initial state." default:"0"`
	Batch  int     `min:"1" max:"1000000" help:"Changed entities in one transaction." default:"5000"`
	DryRun bool    `help:"Print what would be generated, and do nothing."`
	JSON   bool    `help:"Print the result as JSON."`
}

// Run generates.
func (c *seedCmd) Run(e *env) error {
	g := source.Generated{Model: c.Model, Scale: c.Scale, Seed: c.Seed, Load: c.Load}
	a, err := g.Plan()
	if err != nil {
		return usageError{fmt.Errorf("seed: %w", err)}
	}
	switch {
	case c.DryRun && c.JSON:
		return printJSON(e.stdout, a)
	case c.DryRun:
		fmt.Fprintf(e.stdout, "%s: %d entities in blocks %d to %d, %d rows, %s of payload; about %s on disk in layout arkiv, less in compact\n",
			g, a.Entities, a.First, a.Last, a.Rows, size(a.PayloadBytes), size(a.DiskBytes()))
		return nil
	case isTar(c.Dst):
		return c.writeTar(e, g, a)
	}
	return c.fill(e, g, a)
}

// fill loads the stream into a store, from where it stopped if it was
// interrupted.
func (c *seedCmd) fill(e *env, g source.Generated, a source.Amount) (err error) {
	if err := enoughSpace(c.Dst, a.DiskBytes()); err != nil {
		return fmt.Errorf("seed: %w", err)
	}
	ents, end, err := e.openFed(c.Dst, store.EntityOptions{DeferIndexes: true})
	if err != nil {
		return fmt.Errorf("seed: %w", err)
	}
	defer func() { err = errors.Join(err, end()) }()
	head, err := beginOrigin(e.ctx, ents, g.Origin())
	if err != nil {
		return fmt.Errorf("seed: %w", err)
	}
	blocks, err := g.Blocks(head.Block + 1)
	if err != nil {
		return fmt.Errorf("seed: %w", err)
	}
	return load(e, ents, blocks, a, loadOptions{batch: c.Batch, name: "seed", json: c.JSON})
}

// beginOrigin makes sure that a store is empty or was begun from the same
// origin, and records it.
func beginOrigin(ctx context.Context, ents *store.Entities, origin string) (store.BlockHead, error) {
	head, err := ents.Head(ctx)
	if err != nil {
		return head, err
	}
	has, err := ents.Origin(ctx)
	if err != nil {
		return head, err
	}
	switch {
	case has == "" && head.Empty:
		return head, ents.SetOrigin(ctx, origin)
	case has == "":
		return head, fmt.Errorf("%w: the store holds %d blocks from elsewhere; give an empty one", store.ErrHistory, head.Block)
	case has != origin:
		return head, fmt.Errorf("%w: the store was begun as %s, not as %s", store.ErrHistory, has, origin)
	}
	return head, nil
}

// loadOptions are those of load.
type loadOptions struct {
	batch int
	name  string
	json  bool
}

// loaded is the result of a load as printed.
type loadedJSON struct {
	Blocks      int     `json:"blocks"`
	Changes     int     `json:"changes"`
	Skipped     int     `json:"blocks_skipped"`
	Head        uint64  `json:"head"`
	Digest      string  `json:"digest"`
	LoadSeconds float64 `json:"load_seconds"`
	Seconds     float64 `json:"seconds"` // with the indexes
}

// load applies blocks with progress, builds the indexes and prints the result.
func load(e *env, ents *store.Entities, blocks iter.Seq2[entity.Block, error], a source.Amount, o loadOptions) error {
	start := time.Now()
	head, err := ents.Head(e.ctx)
	if err != nil {
		return err
	}
	bar := progress.Start(e.stderr, o.name, "blocks", int64(a.Last))
	bar.Begin(int64(head.Block))
	l, err := ents.Load(e.ctx, blocks, store.LoadOptions{
		Changes:  o.batch,
		Progress: func(l store.Loaded) { bar.Set(int64(l.Head.Block)) },
	})
	bar.Finish()
	if err != nil {
		return fmt.Errorf("%s: %w; run the same command again to go on", o.name, err)
	}
	loading := time.Since(start)
	err = ents.BuildIndexes(e.ctx, func(index string, nth, of int) {
		fmt.Fprintf(e.stderr, "%s: index %d of %d: %s\n", o.name, nth, of, index)
	})
	if err != nil {
		return fmt.Errorf("%s: %w; run the same command again to go on", o.name, err)
	}
	res := loadedJSON{
		Blocks: l.Blocks, Changes: l.Changes, Skipped: l.Skipped, Head: l.Head.Block, Digest: l.Head.Digest.String(),
		LoadSeconds: loading.Seconds(), Seconds: time.Since(start).Seconds(),
	}
	if o.json {
		return printJSON(e.stdout, res)
	}
	fmt.Fprintf(e.stdout, "%d blocks, %d changes in %.1f s, %.0f changes/s; with indexes %.1f s; head %d, digest %s\n",
		res.Blocks, res.Changes, res.LoadSeconds, float64(res.Changes)/max(res.LoadSeconds, 1e-9), res.Seconds, res.Head, res.Digest)
	return nil
}

// writeTar writes the stream as a block tar, which appears under its name when
// it is complete.
func (c *seedCmd) writeTar(e *env, g source.Generated, a source.Amount) (err error) {
	if err := enoughSpace(c.Dst, a.PayloadBytes); err != nil {
		return fmt.Errorf("seed: %w", err)
	}
	blocks, err := g.Blocks(0)
	if err != nil {
		return fmt.Errorf("seed: %w", err)
	}
	n, err := writeTar(e, blocks, c.Dst, int64(a.Last))
	if err != nil {
		return fmt.Errorf("seed: %w", err)
	}
	fmt.Fprintf(e.stdout, "%d blocks in %s\n", n, c.Dst)
	return nil
}

func writeTar(e *env, blocks iter.Seq2[entity.Block, error], path string, last int64) (n int, err error) {
	bar := progress.Start(e.stderr, "write", "blocks", last)
	defer bar.Finish()
	err = filesync.Write(path, 0o600, func(f *os.File) error {
		return feed.NewTarWriter(f).WriteAll(e.ctx, blocks, func(b *entity.Block) {
			n++
			bar.Set(int64(b.Number))
		})
	})
	return n, err
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
