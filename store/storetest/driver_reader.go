package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

// runReader tests stable read views.
func runReader(t *testing.T, h Harness) {
	e := h.open(t, h.NewURL(t), nil).Engine()
	parts[driver.Engine]{
		{"stable", testStable},
		{"concurrent writer", testConcurrentWriter},
	}.run(t, e)
	parts[Harness]{
		{"bounded", testBounded},
		{"one at work", testOneAtWork},
	}.run(t, h)
	parts[driver.Engine]{
		{"closed", testReaderClosed},
		{"no writing", testNoWriting},
	}.run(t, e)
}

// testStable: a view does not show later commits, even if it reads nothing
// before them.
func testStable(t *testing.T, e driver.Engine) {
	table := newNumbers(t, e, "stable", 1, 1)
	before := snapshot(t, e)
	inTx(t, e, func(tx driver.Tx) {
		insert(t, tx, table, 2, 2)
		exec(t, tx, "UPDATE stable SET n = ? WHERE id = ?", 100, 1)
	})
	after := snapshot(t, e)
	inTx(t, e, func(tx driver.Tx) { exec(t, tx, "DELETE FROM stable") })
	for range 2 {
		require.Equal(t, []int64{1}, selectColumn[int64](t, before, "SELECT n FROM stable ORDER BY id"))
		require.Equal(t, []int64{100, 2}, selectColumn[int64](t, after, "SELECT n FROM stable ORDER BY id"))
	}
	requireCount(t, e, table, 0)
}

// testConcurrentWriter: a view shows nothing of an open transaction, and all or
// nothing of a concurrent one that commits.
func testConcurrentWriter(t *testing.T, e driver.Engine) {
	newNumbers(t, e, "concurrent", 1, 50, 2, 50)
	tx := begin(t, e)
	exec(t, tx, "UPDATE concurrent SET n = ? WHERE id = ?", 0, 1)
	inView(t, e, func(q driver.Querier) {
		require.Equal(t, []int64{50, 50}, selectColumn[int64](t, q, "SELECT n FROM concurrent ORDER BY id"))
	})
	require.NoError(t, tx.Rollback())

	var readers errgroup.Group
	stop := make(chan struct{})
	for range 3 {
		readers.Go(func() error { return readSums(e, stop) })
	}
	for i := range int64(25) {
		inTx(t, e, func(tx driver.Tx) {
			exec(t, tx, "UPDATE concurrent SET n = ? WHERE id = ?", i, 1)
			exec(t, tx, "UPDATE concurrent SET n = ? WHERE id = ?", 100-i, 2)
		})
	}
	close(stop)
	require.NoError(t, readers.Wait())
}

// readSums reads two numbers by two statements of one view, repeatedly. It fails
// if their sum is not 100.
func readSums(e driver.Engine, stop <-chan struct{}) error {
	for range 1000 {
		r, err := e.Snapshot(context.Background())
		if err != nil {
			return err
		}
		var sum int64
		for id := range int64(2) {
			n, err := tryColumn[int64](r, "SELECT n FROM concurrent WHERE id = ?", id+1)
			if err != nil {
				return err
			}
			sum += n[0]
		}
		if err := r.Close(); err != nil {
			return err
		}
		if sum != 100 {
			return fmt.Errorf("the numbers of a view add up to %d", sum)
		}
		select {
		case <-stop:
			return nil
		default:
		}
	}
	return nil
}

// testBounded: a call for more readers than Options.Readers waits until one is
// closed.
func testBounded(t *testing.T, h Harness) {
	const readers = 2
	e := h.open(t, h.NewURL(t), &store.Options{Readers: readers}).Engine()
	newNumbers(t, e, "numbers")
	var open []driver.Reader
	for range readers {
		open = append(open, snapshot(t, e))
	}
	refuses(t, context.DeadlineExceeded)(e.Snapshot(briefly(t)))
	refuses(t, context.Canceled)(e.Snapshot(cancelled()))
	inTx(t, e, func(driver.Tx) {}) // the writer does not count as a reader
	must(e.Stats(context.Background()))(t)
	must(e.Settings(context.Background()))(t)

	next := async(func() error {
		r, err := e.Snapshot(context.Background())
		if err != nil {
			return err
		}
		return r.Close()
	})
	requireWaits(t, next)
	require.NoError(t, open[0].Close())
	require.NoError(t, open[0].Close(), "a second Close does nothing")
	require.NoError(t, <-next)

	// The second Close must not have returned a reader that another caller
	// uses.
	again := snapshot(t, e)
	refuses(t, context.DeadlineExceeded)(e.Snapshot(briefly(t)))
	require.NoError(t, again.Close())
}

// testOneAtWork: with Concurrency 1, readers that are open but idle do not
// block other readers of the same caller or of others.
func testOneAtWork(t *testing.T, h Harness) {
	const readers = 4
	e := h.open(t, h.NewURL(t), &store.Options{Readers: readers, Concurrency: 1}).Engine()
	table := newNumbers(t, e, "numbers", 1, 1)
	list := must(e.Snapshots(context.Background(), readers-1))(t)
	held := snapshot(t, e)
	for _, r := range append(list, held) {
		require.EqualValues(t, 1, countRows(t, r, table))
	}
	require.NoError(t, driver.CloseReaders(list))
	var others errgroup.Group
	for range 8 {
		others.Go(func() error {
			for range 10 {
				r, err := e.Snapshot(context.Background())
				if err != nil {
					return err
				}
				_, err = tryColumn[int64](r, "SELECT n FROM numbers")
				if err = errors.Join(err, r.Close()); err != nil {
					return err
				}
			}
			return nil
		})
	}
	require.NoError(t, others.Wait())
	require.EqualValues(t, 1, countRows(t, held, table))
}

func testReaderClosed(t *testing.T, e driver.Engine) {
	newNumbers(t, e, "closed_reader", 1, 1, 2, 2)
	r := snapshot(t, e)
	rows := must(r.Query(context.Background(), "SELECT n FROM closed_reader"))(t)
	require.True(t, rows.Next())
	require.NoError(t, r.Close(), "also under open rows")
	require.False(t, rows.Next())
	require.ErrorIs(t, rows.Err(), driver.ErrClosed)
	require.NoError(t, rows.Close())
	refuses(t, driver.ErrClosed)(r.Query(context.Background(), "SELECT n FROM closed_reader"))
}

// testNoWriting: a statement in a view cannot change the database.
func testNoWriting(t *testing.T, e driver.Engine) {
	table := newNumbers(t, e, "views")
	r := snapshot(t, e)
	rows, err := r.Query(context.Background(), "INSERT INTO views (id, n) VALUES (1, 1)")
	if err == nil {
		for rows.Next() {
			continue
		}
		err = rows.Err()
		require.NoError(t, rows.Close())
	}
	require.Error(t, err)
	require.NoError(t, r.Close())
	requireCount(t, e, table, 0)
}
