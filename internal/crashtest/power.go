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

// Power is the trial that takes the power away: a worker writes to its own
// disk, and the store goes on with the bytes that had reached the disk at a
// random moment. The contents of the operating system's page cache are lost,
// unlike when only a process is killed. This separates the levels of
// durability: Durable loses no acknowledged step, Relaxed may lose the last
// steps, and Unsafe does lose steps, which shows that the trial finds losses.
//
// The disk is an ext4 file system in a file, mounted through a loop device with a
// commit interval that is longer than a worker lives, so that nothing gets to the file
// that no sync asked for. The moment falls between system calls: a sync that has begun
// ends first.
func Power(level driver.Durability) Trial {
	return Trial{
		Name: levelName("power", level), Turn: 10, // a cut takes seconds
		Skip: func(c Cell) string { return cmp.Or(c.skipLevel(level), canMountFiles()) },
		Run: func(ctx context.Context, c Cell, rng *rand.Rand, r *Row) (err error) {
			d, err := newFileDisk(c.Dir)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, d.Unmount(), os.RemoveAll(d.file)) }()
			return lives(ctx, c.Faults, r, func(last bool) (ending, error) {
				end, err := cut(ctx, c, level, rng, d, last)
				if end.killed {
					r.Fault(end.phase)
				}
				if level == driver.Unsafe && err == nil && end.said != "" { // without durability anything may have been
					r.Outcomes["stores destroyed"]++
					end.over = true
				}
				return end, err
			})
		},
	}
}

// longestLife is how long a worker writes at most. It is shorter than the time after
// which Linux writes dirty pages back unasked, 30 seconds.
const longestLife = 1200 * time.Millisecond

// cut mounts the disk, lets a worker check and go on, and replaces the disk by
// the state after a power cut. The last worker only checks.
func cut(ctx context.Context, c Cell, level driver.Durability, rng *rand.Rand, d *Disk, last bool) (ending, error) {
	if err := d.mount(); err != nil {
		return ending{}, err
	}
	// By it a store is told from one that a killed process has left. A system that has started
	// again does not look at it; this one has not.
	if err := os.RemoveAll(filepath.Join(d.Dir, "store-durable")); err != nil {
		return ending{}, errors.Join(err, d.Unmount())
	}
	config := c.config(rng, d.Dir, "durability", string(level))
	config.Lossy, config.CheckOnly = level != driver.Durable, last
	p := &plan{delay: time.Duration(rng.Int64N(int64(longestLife)))}
	if rng.IntN(10) == 0 {
		p.phase, p.delay = phaseCheck, p.delay/50 // while the worker reads the remains
	}
	if last {
		p = nil
	}
	end, err := runWorker(ctx, config, p)
	waitForEnd(end.pids)
	return end, errors.Join(err, d.cutPower())
}
