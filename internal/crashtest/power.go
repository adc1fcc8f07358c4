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

// Power is the trial that simulates a power failure. A worker writes to a disk,
// and the store continues from the bytes that had reached the disk at a random
// moment. Unlike after a kill, the contents of the page cache are lost. This
// separates the levels of durability: Durable loses no acknowledged step,
// Relaxed may lose the last steps, and Unsafe does lose steps, which shows that
// the trial detects losses.
//
// The disk is an ext4 file system in a file, mounted through a loop device. Its
// commit interval is longer than a worker lives, so only data that a sync asked
// for reach the file. The moment falls between system calls: a sync that has
// begun completes.
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
			return runWorkers(ctx, c.Faults, r, func(last bool) (ending, error) {
				end, err := cut(ctx, c, level, rng, d, last)
				if end.killed {
					r.Fault(end.phase)
				}
				if level == driver.Unsafe && err == nil && end.message != "" { // without durability anything may have been
					r.Outcomes["stores destroyed"]++
					end.unusable = true
				}
				return end, err
			})
		},
	}
}

// longestLife bounds how long a worker writes. It is less than the 30 seconds
// after which Linux writes dirty pages back by itself.
const longestLife = 1200 * time.Millisecond

// cut mounts the disk, runs a worker that checks and writes, and replaces the
// disk by its state after a power failure. The last worker only checks.
func cut(ctx context.Context, c Cell, level driver.Durability, rng *rand.Rand, d *Disk, last bool) (ending, error) {
	if err := d.mount(); err != nil {
		return ending{}, err
	}
	// Remove the file of kept numbers, by which the store would notice lost
	// data. A restarted system ignores that file; this system has not been
	// restarted.
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
