package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/mix"
	"github.com/varvedb/varve/bench/pace"
	"github.com/varvedb/varve/bench/probe"
	"github.com/varvedb/varve/internal/engine"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
)

// putDuration adds the duration of f.
func (r *Record) putDuration(unit string, f func() error) error {
	start := time.Now()
	err := f()
	r.Put(time.Since(start).Seconds(), unit)
	return err
}

// backup makes a backup while a writer works, restores it, and checks the
// result.
func (t *Trial) backup(ctx context.Context) error {
	t.Store.MaxReaderAge = 24 * time.Hour // a backup holds a view to its end
	return t.WithBase(ctx, func() error {
		file, err := os.Create(t.file("backup"))
		if err != nil {
			return err
		}
		defer file.Close()
		err = t.backUp(ctx, file)
		if err == nil {
			err = t.DB.Close() // whose memory is the other's then
		}
		if err == nil {
			_, err = file.Seek(0, 0)
		}
		if err != nil {
			return err
		}
		t.Store = t.StoreOptions()
		return t.WithNew(ctx, "", "", func() error {
			err := t.putDuration("restore-s", func() error { _, err := t.DB.Restore(ctx, file, nil); return err })
			if err != nil {
				return err
			}
			return t.putDuration("check-s", func() error {
				report, err := t.DB.Check(ctx, nil)
				return errors.Join(err, report.Err())
			})
		})
	})
}

// backUp writes a backup while commits continue at the rate of the user's
// documents.
func (t *Trial) backUp(ctx context.Context, file *os.File) error {
	err := t.Timed(ctx, nil, func() (*pace.Outcome, error) {
		var group errgroup.Group
		var ended atomic.Bool
		group.Go(func() error {
			defer ended.Store(true)
			return t.putDuration("backup-s", func() (err error) {
				_, err = t.DB.Backup(ctx, file, nil)
				return errors.Join(err, file.Sync())
			})
		})
		writes := bench.CommitConfig{Blocks: t.Data.Rest(), RowRate: ArkivRowRate, Config: pace.Config{More: func() bool { return !ended.Load() }}}
		wrote, err := bench.Commit(ctx, t.Entities, writes)
		err = errors.Join(err, group.Wait())
		t.Outcome(wrote.Outcome)
		t.Put(wrote.RowRate(), "rows/s")
		return wrote.Outcome, err
	})
	if info, noInfo := file.Stat(); noInfo == nil {
		t.Put(float64(info.Size())/1e6, "backup-MB")
	}
	return err
}

// restart measures how soon a store serves again, after the kind of end that
// the variant names.
func (t *Trial) restart(ctx context.Context) error {
	killed := t.Keys.Get("after") == "kill"
	switch {
	case t.Engine.Server != "":
		return fmt.Errorf("%w: a server of the user's is not restarted", ErrSkip)
	case killed && engine.Find(t.Engine.Name).Server:
		return fmt.Errorf("%w: a copy of a running server's files is not what a kill leaves", ErrSkip)
	}
	return t.WithBase(ctx, func() (err error) {
		m, err := t.mixOf(t.mixes()[0])
		if err != nil {
			return err
		}
		var head uint64
		_, err = bench.Commit(ctx, t.Entities, bench.CommitConfig{
			Blocks: t.Data.Rest(), Config: pace.Config{Duration: t.Phase / 2}, Mix: m, Observe: func(b *entity.Block, _ time.Duration) { head = b.Number },
		})
		if err != nil {
			return err
		}
		dir := t.Dir
		if killed { // its process leaves the files of an open, idle database
			run, none := t.Cache.NewRun()
			if none != nil {
				return none
			}
			defer func() { err = errors.Join(err, run.Remove()) }()
			dir = run.Data()
			tx, err := t.DB.Engine().Begin(ctx)
			if err == nil {
				err = errors.Join(os.CopyFS(dir, os.DirFS(t.Dir)), tx.Rollback())
			}
			if err != nil {
				return err
			}
		}
		if err := t.DB.Close(); err != nil {
			return err
		}
		return t.reopen(ctx, dir, m, head)
	})
}

// fastShare is the share of the rate of warm reads from which reads count as fast
// again.
const fastShare = 0.9

// reopen opens a database whose files are in the page cache, as far as the
// budget allows, and starts to read at once.
func (t *Trial) reopen(ctx context.Context, dir string, m mix.Reads, head uint64) (err error) {
	if err := errors.Join(probe.Evict(ctx, dir), probe.Fill(dir, t.Memory)); err != nil && !errors.Is(err, probe.ErrUnsupported) {
		return err
	}
	t.Store.Readers = readers
	start := time.Now()
	db, err := store.Open(ctx, t.Engine.URL(dir), t.Store)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	ents, err := db.Entities(ctx, &store.EntityOptions{Layout: t.layout()})
	if err != nil {
		return err
	}
	t.Put(Milliseconds(time.Since(start)), "open-ms")
	cfg := bench.ReadMixConfig{Mix: m, Head: func() uint64 { return head }, Config: pace.Config{N: 1, Seed: t.questionSeed()}}
	if _, err := bench.ReadMix(ctx, ents, cfg); err != nil {
		return err
	}
	first := time.Since(start)
	t.Put(Milliseconds(first), "first-read-ms")
	cfg.Config = pace.Config{Workers: readers, Duration: t.Phase, Seed: t.questionSeed()}
	out, err := bench.ReadMix(ctx, ents, cfg)
	t.Outcome(out)
	if err != nil {
		return err
	}
	var rates []float64 // of each second
	for i, s := range out.Seconds() {
		rates = append(rates, float64(s.Count)/(s.At-float64(i)))
	}
	rates = rates[:max(len(rates)-1, 1)] // the last one is cut short
	warm := mean(rates[len(rates)/2:])
	t.Put(rates[0], "first-second-qps")
	t.Put(warm, "warm-qps")
	t.Put(first.Seconds()+float64(slices.IndexFunc(rates, func(rate float64) bool { return rate >= fastShare*warm })), "full-rate-s")
	now, err := ents.Head(ctx)
	if err == nil && now.Number != head {
		err = fmt.Errorf("%w: the head is block %d, %d was committed", bench.ErrMismatch, now.Number, head)
	}
	return err
}

// growth commits as fast as possible and completes all deferred work, so that
// the size of a row does not depend on the rate.
func (t *Trial) growth(ctx context.Context) error {
	return t.WithBase(ctx, func() error {
		var rows uint64
		before, after, err := t.sizesAround(ctx, func() error {
			return t.Timed(ctx, nil, func() (*pace.Outcome, error) {
				wrote, err := bench.Commit(ctx, t.Entities, bench.CommitConfig{Blocks: t.Data.Rest(), Config: pace.Config{Duration: t.Phase}})
				t.Outcome(wrote.Outcome)
				rows = wrote.Rows
				return wrote.Outcome, err
			})
		})
		if after > 0 && rows > 0 {
			each := float64(after-before) / float64(rows)
			t.Put(each, "B/row")
			t.Put(each*ArkivRowRate*(24*time.Hour).Seconds()/1e9, "GB/day")
			t.Put(float64(after)/1e6, "after-MB")
		}
		return err
	})
}
