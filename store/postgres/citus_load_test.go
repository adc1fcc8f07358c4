package postgres

import (
	"encoding/binary"
	"flag"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
)

var citusReads = flag.Int64("citus-reads", 300, "views that are compared beside a load on a Citus cluster, with each layout")

// loadRows is how many entities a block creates; it also changes one of the block before.
const loadRows = 20

func loadKey(n, i uint64) (k entity.Key) {
	binary.BigEndian.PutUint64(k[:], (n*1000+i)*0x9E3779B97F4A7C15) // spread
	return k
}

func loadBlock(n uint64) entity.Block {
	b := entity.Block{Number: n}
	op := func(kind entity.Kind, key entity.Key) {
		b.Ops = append(b.Ops, entity.Op{Kind: kind, Key: key, BTL: 1 << 30, ContentType: "x", Content: make([]byte, 200),
			StringAttributes: map[string]string{"type": "t"}, NumericAttributes: map[string]uint64{"b": n}})
	}
	for i := range uint64(loadRows) {
		op(entity.Create, loadKey(n, i))
	}
	if n > 1 {
		op(entity.Update, loadKey(n-1, 0))
	}
	return b
}

// showsBlock tells what a view lacks of its block, of what that changed and of the one
// before as it was left, or has of the next.
func showsBlock(t testing.TB, s *store.Snapshot) error {
	n := s.Number()
	want := map[uint64]uint64{n + 1: 0, n: loadRows + min(n-1, 1)}
	if n > 2 {
		want[n-1] = loadRows
	}
	for b, count := range want {
		q, err := query.Parse(fmt.Sprintf("b = %d", b))
		require.NoError(t, err)
		if got, err := s.Count(t.Context(), q); err != nil || got != count {
			return fmt.Errorf("at block %d there are %d of block %d, not %d: %w", n, got, b, count, err)
		}
	}
	e, err := s.Get(t.Context(), loadKey(max(n, 2)-1, 0))
	if err == nil && e.NumericAttributes["b"] != n {
		err = fmt.Errorf("at block %d an entity is of block %d", n, e.NumericAttributes["b"])
	}
	return err
}

// lookAt opens a view, looks at it, and after the pause again.
func lookAt(t testing.TB, ents *store.Entities, block uint64, pause time.Duration) (opened time.Duration, err error) {
	started := time.Now()
	s, err := ents.At(t.Context(), block)
	if err != nil {
		return 0, err
	}
	defer s.Close()
	opened = time.Since(started)
	if err := showsBlock(t, s); err != nil || pause == 0 {
		return opened, err
	}
	time.Sleep(pause)
	return opened, showsBlock(t, s)
}

func median(list []time.Duration) time.Duration {
	slices.Sort(list)
	return list[len(list)/2]
}

// TestCitusBesideALoad: no view is torn while blocks are applied and merged, and past
// blocks stay right. It tells medians, which citus=false in the URL gives for the server
// alone.
func TestCitusBesideALoad(t *testing.T) {
	for _, layout := range []string{"compact", "arkiv"} {
		t.Run(layout, func(t *testing.T) {
			ents, err := openEntities(t, newCitusURL(t), layout)
			require.NoError(t, err)
			_, err = ents.Apply(t.Context(), loadBlock(1))
			require.NoError(t, err)
			var reads atomic.Int64
			var wg sync.WaitGroup
			for r := range 4 {
				wg.Go(func() {
					for reads.Add(1) <= *citusReads {
						// One of them holds its view for a while.
						if _, err := lookAt(t, ents, store.Head, time.Duration(1-min(r, 1))*20*time.Millisecond); err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
			head := uint64(1)
			var commits, opens []time.Duration
			for ; reads.Load() < *citusReads && !t.Failed() || len(commits) == 0; head++ {
				started := time.Now()
				_, err := ents.Apply(t.Context(), loadBlock(head+1))
				require.NoError(t, err)
				commits = append(commits, time.Since(started))
			}
			wg.Wait()
			require.NoError(t, ents.Flush(t.Context()))
			for i := range uint64(50) {
				opened, err := lookAt(t, ents, 1+i*(head-1)/49, 0)
				require.NoError(t, err)
				opens = append(opens, opened)
			}
			t.Logf("%d blocks, a commit beside readers %v; a view settled %v", head, median(commits), median(opens))
		})
	}
}
