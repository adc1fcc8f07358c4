package sqlitewal

import (
	"context"
	"fmt"
	"time"

	"github.com/varvedb/varve/store/driver"
)

// lookEvery is the time between two looks at the WAL-index: a microsecond each.
const lookEvery = 5 * time.Millisecond

// indexHeader is the part of the WAL-index that each commit changes.
const indexHeader = 48

// Listen implements driver.Listener. SQLite has no notifications, but each
// commit changes the head of the WAL-index, which can be read without a
// statement. Commits of this process are reported, too.
func (k *Checkpointer) Listen(context.Context) (driver.Listening, error) {
	if k.index == nil {
		return nil, fmt.Errorf("listen: %w: on a read-only file system there is no WAL-index", driver.ErrUnsupported)
	}
	return &listening{index: k.index, last: k.index.header()}, nil
}

// Announcement implements driver.Listener.
func (*Checkpointer) Announcement() string { return "" }

type listening struct {
	index *walIndex
	last  [indexHeader]byte
}

// Wait implements driver.Listening.
func (l *listening) Wait(ctx context.Context) error {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		if now := l.index.header(); now != l.last {
			l.last = now
			return nil
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Close implements driver.Listening.
func (l *listening) Close() error { return nil }

func (w *walIndex) header() (b [indexHeader]byte) {
	_, _ = w.file.ReadAt(b[:], 0) // an empty index has no commit to report
	return b
}
