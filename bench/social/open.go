package social

import (
	"context"
	"os"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/store"
)

// Open makes a directory and opens a new database of an engine in it.
func Open(ctx context.Context, engine bench.Engine, dir string, opts *store.Options) (*store.DB, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	return store.Open(ctx, engine.URL(dir), opts)
}
