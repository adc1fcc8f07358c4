package driver

import "context"

// Viewer is implemented by engines to which fixing a view is a message, which the first
// query can take along.
type Viewer interface {
	// View is Snapshot, except that the first query fixes the view.
	View(ctx context.Context) (Reader, error)
}

// View opens a read view for a caller that reads at once: it is fixed by the first query
// at the latest.
func View(ctx context.Context, e Engine) (Reader, error) {
	if v, ok := e.(Viewer); ok {
		return v.View(ctx)
	}
	return e.Snapshot(ctx)
}

// Prefetcher is implemented by views and transactions to which a query is a message.
// Prefetch names a query without arguments, of few rows, that will be run soon: the next
// statement may take it along. A write in between makes it run anew.
type Prefetcher interface {
	Prefetch(ctx context.Context, sql string) error
}

// Prefetch tells a Prefetcher, if it is one.
func Prefetch(ctx context.Context, q Querier, sql string) error {
	if p, ok := q.(Prefetcher); ok {
		return p.Prefetch(ctx, sql)
	}
	return nil
}
