package pace

import (
	"context"
	"sync/atomic"
)

// Activity counts the operations of all loops that share it, for a watch in
// another goroutine. It is safe for concurrent use.
type Activity struct{ begun, ended atomic.Int64 }

// Counts returns how many operations have begun and how many have ended.
func (a *Activity) Counts() (begun, ended int64) {
	ended = a.ended.Load() // first, so that no more seem to have ended than begun
	return a.begun.Load(), ended
}

type activityKey struct{}

// WithActivity returns a context whose loops count their operations in a.
func WithActivity(ctx context.Context, a *Activity) context.Context {
	return context.WithValue(ctx, activityKey{}, a)
}

// activityOf returns the context's activity, or one that nothing watches.
func activityOf(ctx context.Context) *Activity {
	if a, ok := ctx.Value(activityKey{}).(*Activity); ok {
		return a
	}
	return new(Activity)
}
