package crashtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/varvedb/varve/schemas"
)

// Options configure Torture.
type Options struct {
	Trials  []Trial
	Engines []string
	Layouts []string      // as Cell.Layout
	For     time.Duration // how long; zero means until every cell has had Kills faults
	Kills   int           // a cell rests after this many faults of a trial; zero means no limit
	Seed    uint64
	Dir     string // for stores, which are removed after use; empty means the system's
	Keep    bool   // do not remove the directory of a round that found a violation

	// Log, if given, is called after each round.
	Log func(format string, args ...any)
}

// maxViolations is the number of violations after which a trial stops on a cell,
// because further ones would repeat the first.
const maxViolations = 3

// job is a trial on an engine and layout.
type job struct {
	Trial
	*Row
}

// Torture runs rounds of each trial on each engine and layout repeatedly, until
// the time is up, each has had its faults, or ctx is done, which is no error. A
// violation ends only its round. An error means that a trial could not
// continue; the report covers the rounds before.
func Torture(ctx context.Context, o Options) (*Report, error) {
	if o.For > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.For)
		defer cancel()
	}
	r, jobs := &Report{}, o.jobs()
	for _, j := range jobs {
		r.Rows = append(r.Rows, j.Row)
	}
	for busy := true; busy; {
		busy = false
		for _, j := range jobs {
			if ctx.Err() != nil || j.Skipped != "" || len(j.Violations) >= maxViolations || o.Kills > 0 && j.Faults >= o.Kills {
				continue
			}
			busy = o.For > 0 || o.Kills > 0
			if err := o.round(ctx, j); err != nil {
				return r, fmt.Errorf("%s on %s, %s: %w", j.Name, j.Engine, j.Layout, err)
			}
		}
	}
	return r, nil
}

// jobs returns the possible jobs, and the reason for each job that is impossible
// here.
func (o *Options) jobs() (jobs []job) {
	for _, t := range o.Trials {
		for _, engine := range o.Engines {
			for _, layout := range o.Layouts {
				c := Cell{Engine: engine, Layout: layout}
				if layout != EventsLayout && !slices.Contains(schemas.Layouts(), layout) {
					continue
				}
				j := job{t, newRow(t, c)}
				if t.Skip != nil {
					j.Skipped = t.Skip(c)
				}
				jobs = append(jobs, j)
			}
		}
	}
	return jobs
}

// round runs one round in a new directory. The seed of a round is the torture's
// plus the number of earlier rounds of the trial. So the rounds do not depend
// on which other trials run, and the first round can repeat any.
func (o *Options) round(ctx context.Context, j job) (err error) {
	c := Cell{Engine: j.Engine, Layout: j.Layout, Seed: o.Seed + uint64(j.Turns), Faults: j.Turn}
	if o.Kills > 0 {
		c.Faults = min(c.Faults, o.Kills-j.Faults)
	}
	if c.Dir, err = os.MkdirTemp(o.Dir, "varve-torture-"); err != nil {
		return err
	}
	start, faults, broken := time.Now(), j.Faults, len(j.Violations)
	j.Row.cell = c
	err = j.Run(ctx, c, newRand(c.Seed), j.Row)
	took := time.Since(start).Seconds()
	j.Turns++
	j.Seconds += took
	if o.Log != nil {
		o.Log("%s %s/%s seed %d: %d faults in %.1f s, %d in all, %d violations",
			c.Engine, c.Layout, j.Name, c.Seed, j.Faults-faults, took, j.Faults, len(j.Violations)-broken)
	}
	if o.Keep && len(j.Violations) > broken {
		for i := range j.Violations[broken:] {
			j.Violations[broken+i].Kept = c.Dir
		}
		return err
	}
	// A process that was just killed may still write to the directory.
	return errors.Join(err, patiently(func() error { return os.RemoveAll(c.Dir) }))
}

// busyFor bounds how long a directory or disk may stay busy, because killed
// processes take a moment to end.
const busyFor = 10 * time.Second

// patiently retries f while it fails because something is busy.
func patiently(f func() error) error {
	for end := time.Now().Add(busyFor); ; time.Sleep(10 * time.Millisecond) {
		if err := f(); err == nil || time.Now().After(end) {
			return err
		}
	}
}
