package crashtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// Options say what Torture does.
type Options struct {
	Trials  []Trial
	Engines []string
	Layouts []string      // as Cell.Layout
	For     time.Duration // how long; zero means until every cell has had Kills faults
	Kills   int           // faults of each trial and cell after which it rests; zero means no limit
	Turn    int           // faults on one store, after which a new one is made; zero means DefaultTurn
	Seed    uint64
	Dir     string // for stores, removed as they are done with; empty means the system's
	Keep    bool   // do not remove the directory of a turn that found a violation

	// Log, if given, is called after each turn.
	Log func(format string, args ...any)
}

// DefaultTurn is how many faults one store takes.
const DefaultTurn = 25

// job is a trial on an engine and layout.
type job struct {
	trial          Trial
	engine, layout string
	turns          uint64
	broken         int // violations
}

// enough is how many violations a cell may show before its trial rests: the first
// ones say what the further ones would.
const enough = 3

// once is implemented by trials whose turns are all alike.
type once interface{ Once() }

// rests tells whether another turn of a job would tell nothing new.
func (j *job) rests() bool {
	_, alike := j.trial.(once)
	return j.broken >= enough || alike && j.turns > 0
}

// Torture lets each trial have a turn on each engine and layout, over and over,
// until the time is up, every one of them has had its faults, or ctx is done, which
// is no error. A violation ends the turn, not the torture. An error is that of a
// trial that could not go on.
func Torture(ctx context.Context, o Options, r *Report) error {
	if o.Turn == 0 {
		o.Turn = DefaultTurn
	}
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	if o.For > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.For)
		defer cancel()
	}
	jobs := o.jobs(r)
	for ctx.Err() == nil {
		busy := false
		for _, j := range jobs {
			if ctx.Err() != nil || j.rests() || o.Kills > 0 && r.Faults(j.trial, j.engine, j.layout) >= o.Kills {
				continue
			}
			busy = true
			if err := o.turn(ctx, j, r); err != nil {
				return fmt.Errorf("%s on %s, %s: %w", j.trial.Name(), j.engine, j.layout, err)
			}
		}
		if !busy || o.For == 0 && o.Kills == 0 {
			return nil
		}
	}
	return nil
}

// jobs returns what can be done here and records what cannot.
func (o *Options) jobs(r *Report) (jobs []*job) {
	for _, t := range o.Trials {
		for _, engine := range o.Engines {
			for _, layout := range o.Layouts {
				c := Cell{Engine: engine, Layout: layout}
				if reason := t.Skip(c); reason != "" {
					r.skip(t, c, reason)
					continue
				}
				jobs = append(jobs, &job{trial: t, engine: engine, layout: layout})
			}
		}
	}
	return jobs
}

// turn runs one turn in a directory of its own. The turns of a seed are the same
// whatever else is run: the seed of a turn is that of the torture plus the turns that
// the trial has had before, so the first turn repeats any.
func (o *Options) turn(ctx context.Context, j *job, r *Report) (err error) {
	c := Cell{Engine: j.engine, Layout: j.layout, Seed: o.Seed + j.turns, Faults: o.Turn}
	if o.Kills > 0 {
		c.Faults = min(c.Faults, o.Kills-r.Faults(j.trial, j.engine, j.layout))
	}
	j.turns++
	if c.Dir, err = os.MkdirTemp(o.Dir, "varve-torture-"); err != nil {
		return err
	}
	start, before, broken := time.Now(), r.Faults(j.trial, j.engine, j.layout), r.Broken()
	defer func() {
		if o.Keep && r.Broken() > broken {
			r.kept(broken, c.Dir)
			return
		}
		err = errors.Join(err, removeAll(c.Dir))
	}()
	err = j.trial.Run(ctx, c, newRand(c.Seed), r)
	took := time.Since(start)
	r.turn(j.trial, c, took.Seconds())
	faults := r.Faults(j.trial, j.engine, j.layout)
	j.broken += r.Broken() - broken
	o.Log("%s %s/%s seed %d: %d faults in %.1f s, %d in all, %d violations",
		c.Engine, c.Layout, j.trial.Name(), c.Seed, faults-before, took.Seconds(), faults, r.Broken()-broken)
	return err
}

// busyFor is how long a directory or disk may stay busy: processes that were killed
// take a moment to end.
const busyFor = 10 * time.Second

// removeAll removes a directory that a process which was just killed may still write
// to.
func removeAll(dir string) (err error) {
	for end := time.Now().Add(busyFor); ; time.Sleep(20 * time.Millisecond) {
		if err = os.RemoveAll(dir); err == nil || time.Now().After(end) {
			return err
		}
	}
}
