package probe

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/procfs"
	"github.com/prometheus/procfs/blockdevice"
)

// MinPause is the shortest time without the end of an operation that is a pause.
const MinPause = 200 * time.Millisecond

// keptPauses is how many pauses a watch keeps: the longest ones.
const keptPauses = 5

// Pause is a time in which no operation ended although some were in flight.
type Pause struct {
	Begun  time.Time // when the last operation before it ended, or its first one began
	Length time.Duration
	Seen   string // what goroutines, threads and disks did after MinPause
}

// Watch looks for pauses in a goroutine until it is stopped.
type Watch struct {
	counts func() (begun, ended int64) // of operations
	pids   func() []int                // of the engine; none is this process
	look   func([]int) string
	cancel context.CancelFunc
	done   chan struct{}

	kept  []Pause
	count int // of all pauses

	last    int64         // operations that had ended
	current Pause         // since the last progress
	late    time.Duration // the most that the watch itself was late meanwhile
}

// Pauses starts a watch of the operations that counts tells of, which the engine
// with some processes, or this process, does. Stop must be called.
func Pauses(ctx context.Context, counts func() (begun, ended int64), pids func() []int) *Watch {
	w := &Watch{counts: counts, pids: pids, look: state, done: make(chan struct{}), current: Pause{Begun: time.Now()}}
	ctx, w.cancel = context.WithCancel(ctx)
	go w.run(ctx)
	return w
}

func (w *Watch) run(ctx context.Context) {
	defer close(w.done)
	const interval = MinPause / 10
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	before := time.Now()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
		now := time.Now()
		w.late = max(w.late, now.Sub(before)-interval)
		before = now
		w.step(now)
	}
}

// step takes in the operations of the time before now.
func (w *Watch) step(now time.Time) {
	begun, ended := w.counts()

	// A pause that was seen ends with the end of an operation.
	progress := ended != w.last || begun == ended
	w.current.Length = now.Sub(w.current.Begun)
	if progress {
		if w.current.Seen != "" {
			w.keep(w.current)
		}
		w.last, w.current, w.late = ended, Pause{Begun: now}, 0
		return
	}

	// Look once, as soon as it is a pause, because looking stops all goroutines for
	// a moment.
	if w.current.Seen == "" && w.current.Length >= MinPause {
		w.current.Seen = w.look(w.pids())
		if w.late > MinPause/2 {
			w.current.Seen = fmt.Sprintf("the watch itself got no processor for %d ms; %s", w.late.Milliseconds(), w.current.Seen)
		}
	}
}

// keep keeps a pause if it is among the longest.
func (w *Watch) keep(p Pause) {
	w.count++
	w.kept = append(w.kept, p)
	slices.SortStableFunc(w.kept, func(a, b Pause) int { return cmp.Compare(b.Length, a.Length) })
	w.kept = w.kept[:min(len(w.kept), keptPauses)]
}

// Stop ends the watch and returns the number of pauses and the longest of them.
// One that goes on counts as far as it has come.
func (w *Watch) Stop() (count int, longest []Pause) {
	w.cancel()
	<-w.done
	if w.current.Seen != "" {
		w.keep(w.current)
		w.current = Pause{}
	}
	return w.count, w.kept
}

// state says what this process's goroutines, the engine's threads and the disks do now.
func state(pids []int) string {
	stacks := make([]byte, 4<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	parts := []string{waits(string(stacks))}
	if threads := sleeping(pids); threads != "" {
		parts = append(parts, "threads that wait for a disk: "+threads)
	}
	if disks, err := blockdevice.NewDefaultFS(); err == nil {
		if list, err := disks.ProcDiskstats(); err == nil {
			requests := uint64(0)
			for i := range list {
				requests += list[i].IOsInProgress
			}
			parts = append(parts, fmt.Sprintf("requests in the disks' queues: %d", requests))
		}
	}
	return strings.Join(parts, "; ")
}

// idle are the states of goroutines that wait for another goroutine, which says more.
var idle = []string{"select", "chan receive", "chan send", "sleep", "sync.Cond.Wait", "finalizer wait", "GC worker (idle)"}

// module begins the names of this module's functions.
const module = "github.com/varvedb/varve/"

// measuring are the packages that measure. A wait in them says nothing about the
// store.
var measuring = []string{"bench", "internal/lab", "internal/cli"}

// waits counts the goroutines of a dump by state, outermost function, and the
// first function of the store under it: "3 × sync.Mutex.Lock: sync.(*Mutex).Lock
// in store.(*Entities).Apply".
func waits(dump string) string {
	counts := map[string]int{}
	for stack := range strings.SplitSeq(dump, "\n\n") {
		lines := strings.Split(stack, "\n")
		_, status, _ := strings.Cut(lines[0], "[")
		status, _, _ = strings.Cut(status, "]")
		status, _, _ = strings.Cut(status, ",") // and for how long
		if slices.Contains(idle, status) || len(lines) < 2 {
			continue
		}
		for i := 1; i < len(lines); i += 2 {
			name, ours := strings.CutPrefix(function(lines[i]), module)
			if ours && !slices.ContainsFunc(measuring, func(p string) bool { return strings.HasPrefix(name, p) }) {
				counts[fmt.Sprintf("%s: %s in %s", status, function(lines[1]), name)]++
				break
			}
		}
	}
	if len(counts) == 0 {
		return "no goroutine of a store runs or waits for a lock, file or server"
	}
	return "goroutines: " + tally(counts)
}

// function takes the arguments off a line of a stack.
func function(line string) string {
	if i := strings.LastIndexByte(line, '('); i > 0 {
		line = line[:i]
	}
	return strings.TrimPrefix(line, "created by ")
}

// sleeping counts the threads of processes and their descendants that wait for a
// disk, by name and function of the kernel.
func sleeping(pids []int) string {
	found, err := find(pids)
	if err != nil {
		return ""
	}
	counts := map[string]int{}
	for pid := range found {
		threads, err := procfs.AllThreads(pid)
		if err != nil {
			continue // it has ended
		}
		for _, thread := range threads {
			stat, err := thread.Stat()
			if err != nil || stat.State != "D" {
				continue
			}
			wait, err := thread.Wchan()
			if err != nil {
				wait = "?"
			}
			counts[stat.Comm+" in "+wait]++
		}
	}
	return tally(counts)
}

// tally lists how often each thing was counted: "3 × this, 1 × that".
func tally(counts map[string]int) string {
	list := make([]string, 0, len(counts))
	for what, n := range counts {
		list = append(list, fmt.Sprintf("%d × %s", n, what))
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}
