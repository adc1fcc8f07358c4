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

// Listen implements driver.Listener. SQLite tells nobody of a commit, but each changes the
// head of the WAL-index, which costs no statement to look at. Commits of this process are
// heard, too.
func (k *Checkpointer) Listen(context.Context) (driver.Listening, error) {
	index, err := k.indexToHear()
	if err != nil {
		return nil, fmt.Errorf("listen: %w: %w", driver.ErrUnsupported, err)
	}
	return &listening{index: index, last: index.header()}, nil
}

// Announcement implements driver.Listener.
func (*Checkpointer) Announcement() string { return "" }

// indexToHear returns the WAL-index, which who only reads opens now. It stays open until
// the database is closed; see walIndex.
func (k *Checkpointer) indexToHear() (*walIndex, error) {
	if k.index != nil {
		return k.index, nil
	}
	k.hears.Lock()
	defer k.hears.Unlock()
	if k.heard == nil {
		var err error
		if k.heard, err = openWALIndex(k.path); err != nil {
			return nil, err
		}
	}
	return k.heard, nil
}

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
	_, _ = w.file.ReadAt(b[:], 0) // of what is not written yet nothing is heard
	return b
}
