package storetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/event"
	"github.com/varvedb/varve/store/storetest/model"
)

// trials is the number of attempts at each case with a concurrent writer.
// Verify and Check are tried half as often, racing creations a fifth as often.
const trials = 20

func (h Harness) trials() int {
	if h.slow() {
		return max(1, trials/4)
	}
	return trials
}

// concurrentLayouts have different tables. The other layouts differ only in
// indexes.
var concurrentLayouts = []string{"arkiv", "compact"}

// runConcurrent reads, copies, verifies, opens and creates stores while others
// write, open and hold readers.
func runConcurrent(t *testing.T, h Harness) {
	layouts := concurrentLayouts
	if h.slow() {
		layouts = layouts[1:]
	}
	for _, h.layout = range layouts {
		t.Run(h.layout, func(t *testing.T) {
			parts[Harness]{
				{"writer", testFreeWriter},
				{"torn copy", testTornCopy},
				{"readers", testConcurrentReaders},
				{"history again", testHistoryAgain},
			}.run(t, h)
		})
	}
	t.Run("creation", func(t *testing.T) { testCreation(t, h) })
}

// blockWriter writes blocks and events until it is stopped. Now and then it rewinds,
// so that the history stays short. It remembers the digest of each head,
// because a copy must be of one of them.
type blockWriter struct {
	l       *ledger
	random  *rand.Rand
	stop    chan struct{}
	done    chan error
	mu      sync.Mutex
	digests map[entity.Digest]bool
}

// startWriter starts to write. The caller calls end.
func startWriter(t *testing.T, l *ledger) *blockWriter {
	s := &blockWriter{
		l: l, random: rand.New(rand.NewPCG(1, 2)), stop: make(chan struct{}), done: make(chan error, 1),
		digests: map[entity.Digest]bool{},
	}
	for i := range 20 {
		l.apply(t, on("kept "+strconv.Itoa(i), opCreate(1000, number("n", uint64(i)), text("group", "kept"))))
	}
	head := call(t, l.ents.Head)
	s.digests[head.Digest] = true
	events := call1(t, l.db.Events, nil)
	go func() { s.done <- s.write(events, l.head) }()
	return s
}

// concurrentBlocks are written between two rewinds. Only the first concurrentEvents
// blocks come with an event, because every check reads all events.
const (
	concurrentBlocks = 60
	concurrentEvents = 1000
)

func (s *blockWriter) write(events *store.Events, start uint64) error {
	ctx := context.Background()
	written := 0
	for head := start; ; {
		select {
		case <-s.stop:
			return nil
		default:
		}
		if head == start+concurrentBlocks {
			if err := s.l.ents.Rewind(ctx, start); err != nil {
				return err
			}
			head = start
		}
		head++
		applied, err := s.l.ents.Apply(ctx, s.block(head, head-start))
		if err != nil {
			return err
		}
		if written++; written <= concurrentEvents {
			made := event.Event{Type: "block", Tags: []event.Tag{{Key: "n", Value: strconv.FormatUint(head-start, 10)}}}
			if _, err := events.Append(ctx, []event.Event{made}, nil); err != nil {
				return err
			}
		}
		s.mu.Lock()
		s.digests[applied.Head.Digest] = true
		s.mu.Unlock()
	}
}

// block updates, creates and deletes. The first block after a rewind has n = 1.
func (s *blockWriter) block(number uint64, n uint64) entity.Block {
	ops := []entity.Op{
		on("kept "+strconv.Itoa(s.random.IntN(20)), opUpdate(1000, text("group", strconv.Itoa(s.random.IntN(4))))),
		on(fmt.Sprint("new ", n), opCreate(1+s.random.Uint64N(40), content("text/plain", strconv.FormatUint(s.random.Uint64(), 36)))),
	}
	if n > concurrentBlocks-20 {
		ops = append(ops, on(fmt.Sprint("other ", n), opCreate(500)))
	}
	return newBlock(number, ops...)
}

// was reports whether a digest belonged to a head.
func (s *blockWriter) was(d entity.Digest) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.digests[d]
}

func (s *blockWriter) end(t *testing.T) {
	close(s.stop)
	require.NoError(t, <-s.done)
}

// testFreeWriter: while blocks are written, each export is of one head, and a
// check finds no damage.
func testFreeWriter(t *testing.T, h Harness) {
	l := newLedger(t, h)
	s := startWriter(t, l)
	defer s.end(t)
	trials := h.trials()
	for i := range trials {
		digest := must(digestOf(l.ents.History(t.Context())))(t)
		// The writer may not have noted its last commit yet.
		require.Eventually(t, func() bool { return s.was(digest) }, time.Minute, time.Millisecond, "export %d is torn", i)
	}
	for range (trials + 1) / 2 {
		v := call(t, l.ents.Verify)
		require.True(t, v.Digest)
		report := call1(t, l.db.Check, nil)
		require.NoError(t, report.Err())
		require.True(t, report.Digest)
		summary := call(t, l.ents.Summary)
		require.GreaterOrEqual(t, summary.Live, uint64(20))
	}
	copied := newLedger(t, h)
	must(copied.ents.Import(t.Context(), l.ents.History(t.Context()), nil))(t)
	call(t, copied.ents.Verify)
}

func digestOf(history func(func(entity.Changeset, error) bool)) (d entity.Digest, err error) {
	for set, err := range history {
		if err != nil {
			return d, err
		}
		d = d.Next(set)
	}
	return d, nil
}

// testTornCopy: the head is replaced between two views of an export. The copy
// has the new head and nothing of the old one.
func testTornCopy(t *testing.T, h Harness) {
	l := newLedger(t, h)
	closeDB(t, l.db)
	var left atomic.Int64 // views until the head is replaced
	var replace func() error
	l.url = tap(func(call, _ string) error {
		if call == "snapshot" && left.Add(-1) == 0 {
			return replace()
		}
		return nil
	}).tapped(t, l.url, false)
	l.open()
	l.apply(t, on("a", opCreate(1000)), on("b", opCreate(1000)))
	before := l.head
	l.apply(t, on("a", opUpdate(1000)), on("c", opCreate(1000)))
	require.NoError(t, l.ents.Flush(t.Context()))
	replace = func() error {
		err := l.ents.Rewind(t.Context(), before)
		if err == nil {
			_, err = l.ents.Apply(t.Context(), newBlock(l.head, on("b", opUpdate(1000)), on("d", opCreate(1000))))
		}
		return err
	}
	copied := newLedger(t, h)
	left.Store(2)
	must(copied.ents.Import(t.Context(), l.ents.History(t.Context()), nil))(t)
	require.Equal(t, call(t, l.ents.Head), call(t, copied.ents.Head))
}

// testConcurrentReaders: a call that needs several readers gets them, however
// many calls are concurrent. Where a store has too few readers, the error names
// the parameter to set.
func testConcurrentReaders(t *testing.T, h Harness) {
	l := newLedger(t, h, history()...)
	for readers := 1; readers <= 4; readers++ {
		closeDB(t, l.db)
		l.url = withParams(t, l.url, "readers", strconv.Itoa(readers))
		l.open()
		var together sync.WaitGroup
		for range 4 {
			together.Go(func() {
				sets, err := model.Collect(l.ents.History(t.Context()))
				requireReaders(t, err, readers, 3)
				if err == nil && len(sets) == 0 {
					t.Error("an empty history")
				}
				_, err = l.ents.Verify(t.Context())
				requireReaders(t, err, readers, 3)
			})
			together.Go(func() {
				for range 20 {
					s, err := l.ents.At(t.Context(), store.Head)
					if err == nil {
						err = s.Close()
					}
					requireReaders(t, err, readers, 1)
				}
			})
		}
		together.Wait()
	}
}

// requireReaders checks the error of a call that needs several readers.
// Goroutines call it, so it does not end the test.
func requireReaders(t *testing.T, err error, has, needs int) {
	if has >= needs {
		if err != nil {
			t.Error(err)
		}
		return
	}
	if err == nil || !strings.Contains(err.Error(), "readers="+strconv.Itoa(needs)) {
		t.Errorf("with %d of %d readers: %v", has, needs, err)
	}
}

// testHistoryAgain: a history is read twice. Blocks that were added in between
// do not change it. If its own blocks were replaced, it is refused.
func testHistoryAgain(t *testing.T, h Harness) {
	l := newLedger(t, h, history()...)
	again := l.ents.History(t.Context())
	want := collect(t, again)
	l.apply(t, on("later", opCreate(5)), on("c", opUpdate(7)))
	got := collect(t, again)
	requireSame(t, want, got)
	require.NoError(t, l.ents.Rewind(t.Context(), history()[2].Number))
	l.applyBlocks(t, newBlock(want[len(want)-1].Block, on("another", opCreate(5))))
	refuses(t, store.ErrHistory)(model.Collect(again))
}
