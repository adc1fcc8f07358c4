package service

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestWorktime: a request has Options.Work of the store's time in all its parts
// together. The time in which the client takes the answer does not count. Time
// is that of the bubble.
func TestWorktime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Service{opts: Options{Work: 10 * time.Second}}
		w := s.worktime(context.Background())
		defer w.end()
		part := func(length time.Duration) error {
			w.run()
			time.Sleep(length)
			synctest.Wait()
			err := w.errorOf(w.ctx.Err())
			w.stand()
			return err
		}
		require.NoError(t, part(6*time.Second))
		time.Sleep(time.Hour) // the client is slow
		require.NoError(t, part(3*time.Second))
		time.Sleep(time.Hour)
		require.ErrorIs(t, part(2*time.Second), ErrTime)
	})
}
