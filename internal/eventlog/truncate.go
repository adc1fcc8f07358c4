package eventlog

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"strings"

	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/event"
)

// A truncated event has no data any more. If it has an ID, a digest of the former
// data and metadata stands in place of its metadata, so that the store recognises
// a repetition. Its postings stay, so conditions have the same outcome as before.
// Its checksum differs by truncatedMark from the checksum of an event that never
// had data.
const truncatedMark = 0x7472756e

// Gone are truncated events by position, with their digests.
type Gone map[uint64][]byte

// digest returns the digest that replaces an event's data and metadata.
func digest(e *event.Event) []byte {
	sum := sha256.New()
	_, _ = sum.Write(binary.AppendUvarint(nil, uint64(len(e.Data)))) // never fails
	_, _ = sum.Write(e.Data)
	_, _ = sum.Write(e.Metadata)
	return sum.Sum(nil)
}

// Same reports whether a stored event, which may be gone, has the content of another one.
func (g Gone) Same(stored *event.Sequenced, e *event.Event) bool {
	had, gone := g[stored.Position]
	if !gone {
		return stored.Equal(e)
	}
	keys := *e
	keys.Data, keys.Metadata = nil, nil
	return stored.Equal(&keys) && string(had) == string(digest(e))
}

// note takes a scanned event. A truncated one is an error unless the page lets
// it pass.
func (g Gone) note(r *row) error {
	switch {
	case !r.gone:
		return nil
	case g == nil:
		return &event.TruncatedError{Position: uint64(r.position)}
	}
	g[uint64(r.position)] = r.digest
	return nil
}

// The events of one step of Truncate.
const (
	truncateEvents = 1024
	truncateBytes  = 8 << 20
)

// Truncate takes the data and metadata from a bounded number of events at positions above
// after and below before. It returns the last one that it came to.
func (l *Log) Truncate(ctx context.Context, tx driver.Tx, after, before uint64) (last uint64, err error) {
	gone := Gone{}
	list, _, err := l.Read(ctx, tx, Page{Items: []Item{{}}, After: after, Before: before, Limit: truncateEvents, Bytes: truncateBytes, Gone: gone})
	if err != nil || len(list) == 0 {
		return before - 1, err
	}
	last = list[len(list)-1].Position
	rows := make([]any, 0, len(list)*len(eventsTable.Columns))
	for i := range list {
		rows = append(rows, truncated(&list[i], gone)...)
	}
	if _, err := tx.Exec(ctx, "DELETE FROM events WHERE position > ? AND position <= ?", position(after), position(last)); err != nil {
		return 0, err
	}
	return last, tx.Insert(ctx, eventsTable, rows)
}

// truncated returns the row of an event without its data.
func truncated(e *event.Sequenced, gone Gone) []any {
	rest, was := gone[e.Position]
	if !was && !e.ID.IsZero() {
		rest = digest(&e.Event)
	}
	at, micros, id, tags := position(e.Position), e.Time.UnixMicro(), storedID(&e.Event), strings.Join(entryOf(e).tags, separator)
	sum := rowSum(at, micros, []byte(e.Type), id, []byte(tags), nil, rest) ^ truncatedMark
	return []any{at, e.Type, micros, id, tags, nothing, withSum(rest, sum)}
}
