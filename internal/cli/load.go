package cli

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/varvedb/varve/bench/latency"
	"github.com/varvedb/varve/internal/progress"
	"github.com/varvedb/varve/internal/source"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
)

// loadCmd applies a stream as a node would.
type loadCmd struct {
	Source string  `arg:"" store:"" name:"src" help:"Block tar, Arkiv SQLite database, URL of a store, or a generated stream such as dc:scale=0.01,load=100."`
	URL    string  `arg:"" store:"" name:"url" help:"Store to write. Blocks that it holds already are skipped."`
	Rate   float64 `min:"0" max:"10000000" help:"Blocks a second, at fixed times; latency counts from the scheduled time. 0 is as fast as possible." default:"0"`
	Blocks int     `min:"0" max:"1000000000000" help:"Blocks to apply at most; 0 for all." default:"0"`
	JSON   bool    `help:"Print the result as JSON."`
}

// appliedJSON is the result as printed.
type appliedJSON struct {
	Blocks  int         `json:"blocks"`
	Changes int         `json:"changes"`
	Skipped int         `json:"blocks_skipped"`
	Late    int         `json:"blocks_late"` // begun after their scheduled time
	Commit  commitTimes `json:"commit"`
	Seconds float64     `json:"seconds"`
	Head    uint64      `json:"head"`
	Digest  string      `json:"digest"`
}

// commitTimes are the latencies of commits, in nanoseconds.
type commitTimes struct {
	Count int64         `json:"count"`
	P50   time.Duration `json:"p50_ns"`
	P95   time.Duration `json:"p95_ns"`
	P99   time.Duration `json:"p99_ns"`
	Max   time.Duration `json:"max_ns"`
}

// Run applies.
func (c *loadCmd) Run(e *env) (err error) {
	src, err := openSource(e.ctx, c.Source)
	if err != nil {
		return fmt.Errorf("load: %w", err)
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	ents, end, err := e.openFed(c.URL, store.EntityOptions{})
	if err != nil {
		return fmt.Errorf("load: %w", err)
	}
	defer func() { err = errors.Join(err, end()) }()
	res, err := c.apply(e, src, ents)
	if err != nil {
		return fmt.Errorf("load: %w; the store is at block %d", err, res.Head)
	}
	if c.JSON {
		return printJSON(e.stdout, res)
	}
	p99 := "" // of few commits it would be the longest
	if res.Commit.Count >= 100 {
		p99 = ", p99 " + ms(res.Commit.P99)
	}
	fmt.Fprintf(e.stdout, "%d blocks, %d changes in %.1f s; commit p50 %s%s, max %s ms (n %d); %d late; head %d, digest %s\n",
		res.Blocks, res.Changes, res.Seconds, ms(res.Commit.P50), p99, ms(res.Commit.Max), res.Commit.Count, res.Late, res.Head, res.Digest)
	return nil
}

func (c *loadCmd) apply(e *env, src *source.Source, ents *store.Entities) (res appliedJSON, err error) {
	head, err := ents.Head(e.ctx)
	if err != nil {
		return res, err
	}
	rec := latency.NewRecorder()
	bar := progress.Start(e.stderr, "load", "blocks", int64(c.Blocks))
	defer bar.Finish()
	// What is held already is compared and not measured.
	held, err := ents.Load(e.ctx, upTo(src.Reopen(), head), store.LoadOptions{})
	if err != nil {
		return res, err
	}
	res.Skipped = held.Skipped
	start := time.Now()
	defer func() {
		res.Commit = commitTimes{rec.Count(), rec.Quantile(50), rec.Quantile(95), rec.Quantile(99), rec.Max()}
		res.Seconds = time.Since(start).Seconds()
		res.Head, res.Digest = head.Block, head.Digest.String()
	}()
	for b, err := range src.Reopen() {
		if err != nil {
			return res, err
		}
		if !head.Empty && b.Number <= head.Block {
			start = time.Now()
			continue
		}
		if c.Blocks > 0 && res.Blocks == c.Blocks {
			return res, nil
		}
		due, late, err := c.await(e.ctx, start, res.Blocks)
		if err != nil {
			return res, err
		}
		if late {
			res.Late++
		}
		applied, err := ents.Apply(e.ctx, b)
		if err != nil {
			return res, err
		}
		rec.Record(time.Since(due))
		head = applied.Head
		res.Blocks++
		res.Changes += applied.Changes
		bar.Set(int64(res.Blocks))
	}
	return res, nil
}

// upTo gives the blocks up to a head.
func upTo(blocks iter.Seq2[entity.Block, error], head store.BlockHead) iter.Seq2[entity.Block, error] {
	return func(yield func(entity.Block, error) bool) {
		for b, err := range blocks {
			if err == nil && (head.Empty || b.Number > head.Block) {
				return
			}
			if !yield(b, err) {
				return
			}
		}
	}
}

// await waits for the scheduled time of block n and returns it, or the time now
// when there is no schedule.
func (c *loadCmd) await(ctx context.Context, start time.Time, n int) (due time.Time, late bool, err error) {
	now := time.Now()
	if c.Rate == 0 {
		return now, false, ctx.Err()
	}
	due = start.Add(time.Duration(float64(n) / c.Rate * float64(time.Second)))
	wait := due.Sub(now)
	if wait <= 0 {
		return due, wait < 0, ctx.Err()
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return due, false, nil
	case <-ctx.Done():
		return due, false, ctx.Err()
	}
}

func ms(d time.Duration) string {
	v := float64(d) / float64(time.Millisecond)
	switch {
	case v >= 10:
		return fmt.Sprintf("%.0f", v)
	case v >= 0.1:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.3f", v)
}
