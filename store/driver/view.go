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
