package crashtest

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/varvedb/varve/store/driver"
)

// Power is the trial that takes the power away: a worker writes to a disk of its own,
// and the store goes on with what had reached the disk at a moment that nobody chose.
// What the operating system still held in its page cache is lost, as it is not when a
// process is killed. That tells the levels of durability apart: Durable loses nothing
// acknowledged, Relaxed may lose the last steps, and Unsafe does lose, which shows that
// the trial finds what is lost.
//
// The disk is an ext4 file system in a file, mounted through a loop device with a
// commit interval that is longer than a worker lives, so that nothing gets to the file
// that no sync asked for. The moment falls between system calls: a sync that has begun
// ends first.
type Power struct {
	Worker Command
	Level  driver.Durability

	// EarlyRead breaks the workers; see WorkerConfig.
	EarlyRead bool
}

// Name implements Trial.
func (t *Power) Name() string { return levelName("power", t.Level) }

// Skip implements Trial.
func (t *Power) Skip(c Cell) string {
	return cmp.Or(skipLevel(c.Engine, t.Level), canMountDisks())
}

// Run implements Trial.
func (t *Power) Run(ctx context.Context, c Cell, rng *rand.Rand, r *Report) (err error) {
	d, err := newDisk(c.Dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.remove()) }()
	cuts := min(c.Faults, turnCuts)
	for n := range cuts + 1 {
		last := n == cuts
		if ok, err := t.cut(ctx, c, rng, r, d, last); !ok || err != nil || last {
			return err
		}
	}
	return nil
}

// turnCuts is how many cuts a turn has at most: one takes seconds.
const turnCuts = 10

// longestLife is how long a worker writes at most. It is shorter than the time after
// which Linux writes dirty pages back unasked, 30 seconds.
const longestLife = 1200 * time.Millisecond

// cut mounts the disk, lets a worker check and go on, and replaces the disk by what a
// power cut leaves of it. The last worker only checks. It returns false when the turn
// is over.
func (t *Power) cut(ctx context.Context, c Cell, rng *rand.Rand, r *Report, d *disk, last bool) (ok bool, err error) {
	if err := d.mount(); err != nil {
		return false, err
	}
	// By it a store is told from one that a killed process has left. A system that has started
	// again does not look at it; this one has not.
	if err := os.RemoveAll(filepath.Join(d.dir, "store-durable")); err != nil {
		return false, errors.Join(err, d.unmount())
	}
	params := append(drawParams(rng, c.Engine), "durability", string(t.Level))
	config := WorkerConfig{
		URL:    storeURL(c.Engine, filepath.Join(d.dir, "store"), params...),
		Layout: c.Layout, Journal: filepath.Join(c.Dir, "journal"), Seed: rng.Uint64(),
		Lossy: t.Level != driver.Durable, CheckOnly: last, NoPrune: c.Seed%2 == 0, EarlyRead: t.EarlyRead,
	}
	p := &plan{delay: time.Duration(rng.Int64N(int64(longestLife)))}
	if rng.IntN(10) == 0 {
		p.phase, p.delay = phaseCheck, p.delay/50 // while what is left is read
	}
	if last {
		p = nil
	}
	before := r.Broken()
	end, err := runWorker(ctx, t.Worker, config, p)
	waitForEnd(end.pids)
	if ctx.Err() != nil {
		return false, d.unmount()
	}
	err = errors.Join(t.judge(c, r, end, err), d.cutPower())
	if end.killed {
		r.Fault(t, c, end.phase)
	}
	return err == nil && r.Broken() == before && end.killed, err
}

// judge reports what became of the cut before. Without durability anything may have.
func (t *Power) judge(c Cell, r *Report, end ending, err error) error {
	if end.checked {
		r.Count(t, c, "reopened", 1)
		r.Count(t, c, "found unacknowledged", end.found)
		r.Count(t, c, "steps lost", end.lost)
		if end.lost > 0 {
			r.Count(t, c, "cuts that lost", 1)
		}
	}
	if t.Level == driver.Unsafe && err == nil && end.said != "" {
		r.Count(t, c, "stores destroyed", 1)
		return nil
	}
	return judge(t, c, r, end, err)
}
