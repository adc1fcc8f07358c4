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

// Full is the trial that fills the disk under a working store: within a moment that
// nobody chose only some bytes are left, and the worker goes on until a step fails or
// the engine ends the process. Then there is space again, and the store must be at a
// step that the journal allows. One time in eight the disk is full before the store
// is opened.
type Full struct {
	Worker Command

	// EarlyAck breaks the workers; see WorkerConfig.
	EarlyAck bool
}

// The sizes of the disk in bytes: an embedded server has files of its own.
const (
	fullDisk       = 128 << 20
	fullServerDisk = 320 << 20
)

// bareIOError is all that libSQL says when there is no space for what opening needs.
const bareIOError = "disk I/O error"

// fullTurn is how many times a store is filled at most: it grows each time.
const fullTurn = 10

// Name implements Trial.
func (*Full) Name() string { return "full" }

// Skip implements Trial.
func (*Full) Skip(Cell) string { return CanMountMemory() }

// Run implements Trial.
func (t *Full) Run(ctx context.Context, c Cell, rng *rand.Rand, r *Report) (err error) {
	size := int64(fullDisk)
	if ownLog(c.Engine) {
		size = fullServerDisk
	}
	dir := filepath.Join(c.Dir, "disk")
	if err := MountMemory(dir, size); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, UnmountMemory(dir)) }()
	for range min(c.Faults, fullTurn) {
		if ok, err := t.fill(ctx, c, dir, rng, r); !ok || err != nil {
			return err
		}
	}
	return nil
}

// fill fills the disk once. It returns false when the turn is over.
func (t *Full) fill(ctx context.Context, c Cell, dir string, rng *rand.Rand, r *Report) (ok bool, err error) {
	b := &ballast{dir: dir, leave: rng.Int64N(600 << 10)}
	if rng.IntN(2) == 0 {
		b.leave = rng.Int64N(4 << 20)
	}
	p := &plan{delay: time.Duration(rng.IntN(400)) * time.Millisecond, act: b.load}
	if rng.IntN(8) == 0 {
		if err := b.load(); err != nil {
			return false, err
		}
		p = nil
	}
	before := r.Broken()
	end, err := runWorker(ctx, t.Worker, t.config(c, dir, rng, false), p)
	waitForEnd(end.pids)
	full := b.pieces > 0
	err = errors.Join(err, b.unload())
	if ctx.Err() != nil {
		return false, nil
	}
	switch {
	case err != nil || end.broken || !full: // it hangs, found something, or was not let to work
		return false, judge(t, c, r, end, err)
	case end.code != exitTrouble:
		r.Count(t, c, "process ended: "+firstLine(end.stderr), 1)
	case strings.Contains(end.said, driver.ErrDiskFull.Error()):
		r.Count(t, c, "disk full", 1)
	case ownLog(c.Engine):
		r.Count(t, c, "server ended", 1)
	case strings.Contains(end.said, bareIOError):
		r.Count(t, c, "I/O error", 1)
	default:
		r.Violate(t, c, "a full disk gave another error in phase %q: %s", end.phase, end.said)
	}
	r.Fault(t, c, end.phase)
	end, err = runWorker(ctx, t.Worker, t.config(c, dir, rng, true), nil)
	waitForEnd(end.pids)
	if ctx.Err() != nil {
		return false, nil
	}
	if end.checked {
		r.Count(t, c, "reopened", 1)
		r.Count(t, c, "found unacknowledged", end.found)
	}
	err = judge(t, c, r, end, err)
	return err == nil && r.Broken() == before, err
}

// firstLine is what a process that was ended says first.
func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line[:min(len(line), 120)]
}

func (t *Full) config(c Cell, dir string, rng *rand.Rand, check bool) WorkerConfig {
	return WorkerConfig{
		URL:    storeURL(c.Engine, filepath.Join(dir, "store"), drawParams(rng, c.Engine)...),
		Layout: c.Layout, Journal: filepath.Join(c.Dir, "journal"), Seed: rng.Uint64(), CheckOnly: check, NoPrune: c.Seed%2 == 0,
		EarlyAck: t.EarlyAck,
	}
}

// ballast fills a disk but for some bytes. An engine that empties its log finds room
// in it again, so there are less of them every time a while has passed.
type ballast struct {
	dir    string
	leave  int64 // bytes
	pieces int
	timer  *time.Timer
	err    error
	mu     sync.Mutex
	light  bool // nothing is added any more
}

// ballastEvery is the time between two pieces.
const ballastEvery = 500 * time.Millisecond

func (b *ballast) piece(i int) string { return filepath.Join(b.dir, fmt.Sprint("ballast", i)) }

// load fills the disk.
func (b *ballast) load() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.light {
		return nil
	}
	if err := occupy(b.piece(b.pieces), b.leave); err != nil {
		b.err = errors.Join(b.err, err)
	}
	b.pieces++
	b.leave /= 2
	b.timer = time.AfterFunc(ballastEvery, func() { _ = b.load() }) // unload tells the error
	return b.err
}

// unload gives the space back.
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
