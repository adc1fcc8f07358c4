package crashtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/varvedb/varve/store/driver"
)

// The sizes of the disk in bytes; an embedded server has more files.
const (
	fullDisk       = 128 << 20
	fullServerDisk = 320 << 20
)

// bareIOError is libSQL's message when there is no space for the files that
// opening needs.
const bareIOError = "disk I/O error"

// Full is the trial that fills the disk under a working store. At a random
// moment only some bytes are left free, and the worker goes on until a step
// fails or the engine ends the process. Then the space is freed, and the store
// must be at a step that the journal allows. One time in eight the disk is full
// before the store is opened.
func Full() Trial { return full(false) }

func full(earlyAck bool) Trial {
	return Trial{
		Name: "full", Turn: 10, // a store grows each time
		Skip: func(Cell) string { return CanMount() },
		Run: func(ctx context.Context, c Cell, rng *rand.Rand, r *Row) (err error) {
			size := int64(fullDisk)
			if c.ownLog() {
				size = fullServerDisk
			}
			d, err := NewDisk(filepath.Join(c.Dir, "disk"), size)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, d.Unmount()) }()
			return runWorkers(ctx, c.Faults, r, func(last bool) (ending, error) {
				config := c.config(rng, d.Dir)
				config.EarlyAck, config.CheckOnly = earlyAck, last
				if last {
					end, err := runWorker(ctx, config, nil)
					waitForEnd(end.pids)
					return end, err
				}
				return fill(ctx, d.Dir, config, rng, r)
			})
		},
	}
}

// fill runs a worker while the disk fills.
func fill(ctx context.Context, dir string, config workerConfig, rng *rand.Rand, r *Row) (ending, error) {
	b := &ballast{dir: dir, leave: rng.Int64N(600 << 10)}
	if rng.IntN(2) == 0 {
		b.leave = rng.Int64N(4 << 20)
	}
	p := &plan{delay: time.Duration(rng.IntN(400)) * time.Millisecond, act: b.load}
	if rng.IntN(8) == 0 {
		p = nil
		if err := b.load(); err != nil {
			return ending{}, err
		}
	}
	end, err := runWorker(ctx, config, p)
	waitForEnd(end.pids)
	full := b.pieces > 0
	err = errors.Join(err, b.unload())
	if err != nil || end.broken || !full { // it hangs, found a violation, or the disk never filled up
		return end, err
	}
	r.Fault(end.phase)
	switch {
	case end.code != exitTrouble:
		r.Outcomes["process ended: "+firstLine(end.stderr)]++
	case strings.Contains(end.message, driver.ErrDiskFull.Error()):
		r.Outcomes["disk full"]++
	case r.cell.ownLog(): // a server without space ends, and its client sees no more than that
		r.Outcomes["server ended"]++
	case strings.Contains(end.message, bareIOError):
		r.Outcomes["I/O error"]++
	default:
		r.Violate("a full disk gave another error in phase %q: %s", end.phase, end.message)
	}
	end.code = exitDone // this is the expected ending
	return end, nil
}

// firstLine is the first line of an ended process's output.
func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line[:min(len(line), 120)]
}

// ballast fills a disk except for some bytes. An engine that empties its log
// frees space, so the free bytes are reduced again at intervals.
type ballast struct {
	dir    string
	leave  int64 // bytes
	pieces int
	timer  *time.Timer
	err    error
	mu     sync.Mutex
	light  bool // from now on no step may add data
}

// ballastEvery is that interval.
const ballastEvery = 500 * time.Millisecond

func (b *ballast) piece(i int) string { return filepath.Join(b.dir, fmt.Sprint("ballast", i)) }

// load fills the disk.
func (b *ballast) load() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.light {
		return nil
	}
	b.err = errors.Join(b.err, occupy(b.piece(b.pieces), b.leave))
	b.pieces++
	b.leave /= 2
	b.timer = time.AfterFunc(ballastEvery, func() { _ = b.load() }) // unload tells the error
	return b.err
}

// unload frees the space.
func (b *ballast) unload() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.light = true
	if b.timer != nil {
		b.timer.Stop()
	}
	err := b.err
	for i := range b.pieces {
		err = errors.Join(err, os.Remove(b.piece(i)))
	}
	return err
}
