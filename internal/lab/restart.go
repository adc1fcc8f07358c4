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

// took adds how long something took.
func (r *Record) took(unit string, f func() error) error {
	start := time.Now()
	err := f()
	r.Put(time.Since(start).Seconds(), unit)
	return err
}

// backup makes a backup while a writer works, restores it, and checks the
// result.
func (l *Lab) backup(ctx context.Context, layout string, r *Record) error {
	o := l.StoreOptions()
	o.MaxReaderAge = 24 * time.Hour // a backup holds a view to its end
	return l.WithBase(ctx, layout, l.Scale, o, r, func(d *bench.Dataset, cp *bench.Copy) error {
		file, err := os.Create(besideOf(cp, "backup"))
		if err != nil {
			return err
		}
		defer file.Close()
		err = l.backUp(ctx, d, cp, file, r)
		if err == nil {
			err = cp.DB.Close() // whose memory is the other's then
		}
		if err == nil {
			_, err = file.Seek(0, 0)
		}
		if err != nil {
			return err
		}
		return l.WithNew(ctx, "", "", l.StoreOptions(), r, func(to *bench.Copy) error {
			err := r.took("restore-s", func() error { _, err := to.DB.Restore(ctx, file, nil); return err })
			if err != nil {
				return err
			}
			return r.took("check-s", func() error {
				report, err := to.DB.Check(ctx, nil)
				return errors.Join(err, report.Err())
			})
		})
	})
}

// backUp writes a backup while commits go on at the rate of the user's documents.
func (l *Lab) backUp(ctx context.Context, d *bench.Dataset, cp *bench.Copy, file *os.File, r *Record) error {
	err := l.Timed(ctx, cp, r, func(ctx context.Context) (*pace.Outcome, error) {
		var group errgroup.Group
		var ended atomic.Bool
		group.Go(func() error {
			defer ended.Store(true)
			return r.took("backup-s", func() (err error) {
				_, err = cp.DB.Backup(ctx, file, nil)
				return errors.Join(err, file.Sync())
			})
		})
		writes := bench.CommitConfig{Blocks: d.Rest(), RowRate: ArkivRowRate, Config: pace.Config{More: func() bool { return !ended.Load() }}}
		wrote, err := bench.Commit(ctx, cp.Entities, writes)
		err = errors.Join(err, group.Wait())
		r.Outcome(wrote.Outcome)
		r.Put(wrote.RowRate(), "rows/s")
		return wrote.Outcome, err
	})
	if info, noInfo := file.Stat(); noInfo == nil {
		r.Put(float64(info.Size())/1e6, "backup-MB")
	}
	return err
}

// restart measures how soon a store serves again, after the end that the record is of.
func (l *Lab) restart(ctx context.Context, layout string, r *Record) error {
	killed := r.Keys.Get("after") == "kill"
	switch {
	case l.Engine.Server != "":
		return fmt.Errorf("%w: a server of the user's is not restarted", ErrSkip)
	case killed && engine.Find(l.Engine.Name).Server:
		return fmt.Errorf("%w: a copy of a running server's files is not what a kill leaves", ErrSkip)
	}
	return l.WithBase(ctx, layout, l.Scale, l.StoreOptions(), r, func(d *bench.Dataset, cp *bench.Copy) (err error) {
		m, err := l.mixOf(l.mixes()[0], d)
		if err != nil {
			return err
		}
		var head uint64
		_, err = bench.Commit(ctx, cp.Entities, bench.CommitConfig{
			Blocks: d.Rest(), Config: pace.Config{Duration: l.Phase / 2}, Mix: m, Observe: func(b *entity.Block, _ time.Duration) { head = b.Number },
		})
		if err != nil {
			return err
		}
		dir := cp.Dir
		if killed { // its process leaves the files of an open, idle database
			run, none := l.Cache.NewRun()
			if none != nil {
				return none
			}
			defer func() { err = errors.Join(err, run.Remove()) }()
			dir = run.Data()
			tx, err := cp.DB.Engine().Begin(ctx)
			if err == nil {
				err = errors.Join(os.CopyFS(dir, os.DirFS(cp.Dir)), tx.Rollback())
			}
			if err != nil {
				return err
			}
		}
		if err := cp.DB.Close(); err != nil {
			return err
		}
		return l.reopen(ctx, dir, layout, m, head, r)
	})
}

// full is the part of the rate of warm reads at which they count as fast again.
const full = 0.9

// reopen opens a database whose files the page cache holds, as far as the budget goes, and reads at once.
func (l *Lab) reopen(ctx context.Context, dir, layout string, m mix.Reads, head uint64, r *Record) (err error) {
	if err := errors.Join(probe.Evict(dir), probe.Fill(dir, l.Memory)); err != nil && !errors.Is(err, probe.ErrUnsupported) {
		return err
	}
	o := l.StoreOptions()
	o.Readers = readers
	start := time.Now()
	db, err := store.Open(ctx, l.Engine.URL(dir), o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	ents, err := db.Entities(ctx, &store.EntityOptions{Layout: layout})
	if err != nil {
		return err
	}
	r.Put(Milliseconds(time.Since(start)), "open-ms")
	cfg := bench.ReadMixConfig{Mix: m, Head: func() uint64 { return head }, Config: pace.Config{N: 1, Seed: l.fresh()}}
	if _, err := bench.ReadMix(ctx, ents, cfg); err != nil {
		return err
	}
	first := time.Since(start)
	r.Put(Milliseconds(first), "first-read-ms")
	cfg.Config = pace.Config{Workers: readers, Duration: l.Phase, Seed: l.fresh()}
	out, err := bench.ReadMix(ctx, ents, cfg)
	r.Outcome(out)
	if err != nil {
		return err
	}
	var rates []float64 // of each second
	for i, s := range out.Seconds() {
		rates = append(rates, float64(s.Count)/(s.At-float64(i)))
	}
	rates = rates[:max(len(rates)-1, 1)] // the last one is cut short
	warm := mean(rates[len(rates)/2:])
	r.Put(rates[0], "first-second-qps")
	r.Put(warm, "warm-qps")
	r.Put(first.Seconds()+float64(slices.IndexFunc(rates, func(rate float64) bool { return rate >= full*warm })), "full-rate-s")
	now, err := ents.Head(ctx)
	if err == nil && now.Number != head {
		err = fmt.Errorf("%w: the head is block %d, %d was committed", bench.ErrMismatch, now.Number, head)
	}
	return err
}

// growth commits as fast as it goes and does all put-off work: then the size of
// a row does not depend on the rate.
func (l *Lab) growth(ctx context.Context, layout string, r *Record) error {
	return l.WithBase(ctx, layout, l.Scale, l.StoreOptions(), r, func(d *bench.Dataset, cp *bench.Copy) error {
		var rows uint64
		before, after, err := sizesAround(ctx, cp, func() error {
			return l.Timed(ctx, cp, r, func(ctx context.Context) (*pace.Outcome, error) {
				wrote, err := bench.Commit(ctx, cp.Entities, bench.CommitConfig{Blocks: d.Rest(), Config: pace.Config{Duration: l.Phase}})
				r.Outcome(wrote.Outcome)
				rows = wrote.Rows
				return wrote.Outcome, err
			})
		})
		if after > 0 && rows > 0 {
			each := float64(after-before) / float64(rows)
			r.Put(each, "B/row")
			r.Put(each*ArkivRowRate*(24*time.Hour).Seconds()/1e9, "GB/day")
			r.Put(float64(after)/1e6, "after-MB")
		}
		return err
	})
}
