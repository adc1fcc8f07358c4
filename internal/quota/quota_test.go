package quota_test

import (
	"bytes"
	"context"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/quota"
)

const mib = 1 << 20

func TestFree(t *testing.T) {
	q := quota.New(mib)
	all := q.Hold(nil)
	require.True(t, all.Try(mib))
	require.True(t, q.Hold(nil).Try(quota.Free), "small requests need none of it")
	require.False(t, q.Hold(nil).Try(quota.Free+1))
	require.True(t, all.Try(mib), "it has that much")
	all.Release()
	all.Release()
	again := q.Hold(nil)
	require.True(t, again.Try(10*mib), "more than there is is all there is")
	require.False(t, all.Try(mib))
	require.NoError(t, (*quota.Quota)(nil).Hold(nil).Take(t.Context(), mib), "without a quota all is allowed")
}

func TestFull(t *testing.T) {
	q := quota.New(mib)
	q.Grace, q.Wait = time.Millisecond, 20*time.Millisecond
	first, second := q.Hold(nil), q.Hold(nil)
	require.NoError(t, first.Take(t.Context(), mib))
	require.ErrorIs(t, second.Take(t.Context(), mib), quota.ErrFull, "who does not wait for its client keeps it")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, second.Take(ctx, mib), context.Canceled)
	second.Release() // has nothing
	first.Release()
	require.NoError(t, second.Take(t.Context(), mib))
}

// TestCutOff: who holds memory for longer than the grace is cut off when another one waits,
// and only then.
func TestCutOff(t *testing.T) {
	q := quota.New(mib)
	q.Grace, q.Wait = time.Millisecond, time.Minute
	cut := make(chan struct{})
	slow := q.Hold(func() { close(cut) })
	require.True(t, slow.Try(mib))
	slow.Await()
	var wg sync.WaitGroup
	wg.Go(func() {
		<-cut
		slow.Release()
	})
	require.NoError(t, q.Hold(nil).Take(t.Context(), mib))
	wg.Wait()
}

// TestTogether: many requests never hold more than the quota.
func TestTogether(t *testing.T) {
	q := quota.New(mib)
	var held, most atomic.Int64
	var wg sync.WaitGroup
	for i := range 64 {
		n := int64(mib/8 + i*1000)
		wg.Go(func() {
			h := q.Hold(nil)
			defer h.Release()
			for range 50 {
				if h.Take(t.Context(), n) != nil {
					return
				}
				now := held.Add(n)
				for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
				}
				held.Add(-n)
				h.Release()
			}
		})
	}
	wg.Wait()
	require.LessOrEqual(t, most.Load(), int64(mib))
	require.Positive(t, most.Load())
}

// TestRead: a body is read whole, whatever its length, and its memory is held.
func TestRead(t *testing.T) {
	for _, n := range []int{0, 1, quota.Free - 513, quota.Free - 512, quota.Free, 100_000, mib - 600, mib} {
		for _, length := range []int64{-1, int64(n)} {
			q := quota.New(4 * mib)
			h := q.Hold(nil)
			body := bytes.Repeat([]byte("x"), n)
			var b bytes.Buffer
			require.NoError(t, h.Read(t.Context(), &b, iotest.OneByteReader(bytes.NewReader(body)), length))
			require.Equal(t, n, b.Len())
			rest := int64(4*mib - b.Cap())
			if b.Cap() > quota.Free {
				require.True(t, q.Hold(nil).Try(rest-rest/8), "no more is held than needed")
				if length < 0 {
					continue
				}
				require.False(t, q.Hold(nil).Try(rest+quota.Free), "%d bytes: what the buffer has is held", n)
			}
		}
	}
	q := quota.New(mib)
	q.Wait = 0
	first, second := q.Hold(nil), q.Hold(nil)
	require.NoError(t, first.Take(t.Context(), mib))
	require.ErrorIs(t, second.Read(t.Context(), new(bytes.Buffer), bytes.NewReader(make([]byte, mib)), -1), quota.ErrFull)
	require.ErrorIs(t, second.Read(t.Context(), new(bytes.Buffer), iotest.ErrReader(io.ErrUnexpectedEOF), -1), io.ErrUnexpectedEOF)
}
