package probe

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench/pace"
)

// A pause is when no operation ends although some are in flight. A time without
// operations is none, and neither is an operation of less than MinPause.
func TestPauses(t *testing.T) {
	type moment struct{ after, begun, ended int64 } // in milliseconds
	for name, tt := range map[string]struct {
		moments []moment
		count   int
		lengths []time.Duration // of the longest
	}{
		"nothing is asked":   {moments: []moment{{0, 5, 5}, {500, 5, 5}, {9000, 5, 5}}},
		"operations end":     {moments: []moment{{0, 1, 0}, {190, 2, 1}, {380, 3, 2}, {570, 4, 3}}},
		"one takes long":     {[]moment{{0, 1, 1}, {20, 2, 1}, {220, 2, 1}, {400, 2, 1}, {450, 2, 2}, {460, 3, 3}}, 1, ms(450)},
		"one of many ends":   {moments: []moment{{0, 9, 0}, {150, 9, 1}, {300, 9, 2}, {450, 9, 3}}},
		"it goes on":         {[]moment{{0, 1, 0}, {300, 1, 0}, {700, 1, 0}}, 1, ms(700)},
		"the longest of six": {[]moment{{0, 1, 0}, {210, 1, 0}, {210, 2, 1}, {450, 2, 1}, {450, 3, 2}, {670, 3, 2}, {670, 4, 3}, {900, 4, 3}, {900, 5, 4}, {1150, 5, 4}, {1150, 6, 5}, {1400, 6, 5}, {1410, 7, 6}}, 6, ms(260, 250, 240, 230, 220)},
	} {
		t.Run(name, func(t *testing.T) {
			start, looks := time.Now(), 0
			var now moment
			w := &Watch{
				counts: func() (int64, int64) { return now.begun, now.ended }, pids: func() []int { return nil },
				look:   func([]int) string { looks++; return "seen" },
				cancel: func() {}, done: make(chan struct{}), current: Pause{Begun: start},
			}
			close(w.done)
			for _, now = range tt.moments {
				w.step(start.Add(time.Duration(now.after) * time.Millisecond))
			}
			count, longest := w.Stop()
			require.Equal(t, tt.count, count)
			require.Equal(t, tt.count, looks, "it looks once in each pause")
			var lengths []time.Duration
			for _, p := range longest {
				lengths = append(lengths, p.Length)
			}
			require.Equal(t, tt.lengths, lengths)
		})
	}
}

func ms(list ...int64) (lengths []time.Duration) {
	for _, n := range list {
		lengths = append(lengths, time.Duration(n)*time.Millisecond)
	}
	return lengths
}

// The operations of a loop are watched, whatever its context is derived from, and
// a pause says where they are.
func TestWatchLoop(t *testing.T) {
	var activity pace.Activity
	seen := make(chan string, 1)
	w := &Watch{counts: activity.Counts, pids: func() []int { return nil }, done: make(chan struct{}), current: Pause{Begun: time.Now()}}
	w.look = func(pids []int) string {
		text := state(pids)
		seen <- text
		return text
	}
	ctx, cancel := context.WithCancel(t.Context())
	w.cancel = cancel
	go w.run(ctx)

	var held sync.Mutex
	held.Lock()
	loop, end := context.WithTimeout(pace.WithActivity(t.Context(), &activity), time.Hour)
	defer end()
	done := make(chan error, 1)
	go func() {
		_, err := pace.Loop(loop, pace.Config{N: 1}, func(context.Context, *pace.Step) error {
			held.Lock()
			return nil
		})
		done <- err
	}()
	require.Contains(t, <-seen, "requests in the disks' queues: ")
	held.Unlock()
	require.NoError(t, <-done)
	count, longest := w.Stop()
	require.Equal(t, 1, count)
	require.GreaterOrEqual(t, longest[0].Length, MinPause)
	begun, ended := activity.Counts()
	require.Equal(t, []int64{1, 1}, []int64{begun, ended})
}

// Of a dump of goroutines counts what runs, or waits for a lock, a file or a
// server, under a function of a store; who waits for another goroutine says nothing.
func TestWaits(t *testing.T) {
	const dump = `goroutine 7 [sync.Mutex.Lock]:
internal/sync.runtime_SemacquireMutex(0x1, 0x2)
	/sema.go:1 +0x1
sync.(*Mutex).Lock(...)
	/mutex.go:1
github.com/varvedb/varve/store.(*Entities).Apply(0x3)
	/apply.go:1 +0x1
github.com/varvedb/varve/bench.Commit(0x3)
	/commit.go:1

goroutine 8 [sync.Mutex.Lock, 2 minutes]:
internal/sync.runtime_SemacquireMutex(0x1, 0x2)
	/sema.go:1 +0x1
github.com/varvedb/varve/store.(*Entities).Apply(0x3)
	/apply.go:1 +0x1

goroutine 9 [syscall]:
syscall.fsync(0x3)
	/sys.go:1
github.com/varvedb/varve/internal/sqlitewal.(*Log).Sync(0x3)
	/wal.go:1

goroutine 10 [select]:
runtime.gopark(0x1)
	/proc.go:1
github.com/varvedb/varve/store.(*Entities).Flush(0x3)
	/flush.go:1

goroutine 11 [running]:
github.com/varvedb/varve/bench/pace.Loop(0x3)
	/loop.go:1
`
	require.Equal(t, "goroutines: 1 × syscall: syscall.fsync in internal/sqlitewal.(*Log).Sync, "+
		"2 × sync.Mutex.Lock: internal/sync.runtime_SemacquireMutex in store.(*Entities).Apply", waits(dump))
	require.Equal(t, "no goroutine of a store runs or waits for a lock, file or server", waits("goroutine 1 [running]:\nmain.main()\n\t/main.go:1\n"))
}
