package eventlog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/varvedb/varve/internal/statement"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/event"
)

// columns lists the columns of a whole event; see row.
func (l *Log) columns() string {
	return l.keyColumns() + ", events.time, events.data, events.metadata"
}

func (l *Log) keyColumns() string {
	return "events.position, " + l.traits.TextColumn("events.type") + ", events.id, " + l.traits.TextColumn("events.tags")
}

// keyRow is a row of keyColumns. Its slices are valid until the next row.
type keyRow struct {
	at            uint64
	typ, id, tags []byte
}

// eachKey calls f with each row of keyColumns that a text selects.
func eachKey(ctx context.Context, q driver.Querier, text string, args []any, f func(k *keyRow) error) error {
	var k keyRow
	return statement.Each(ctx, q, driver.Statement{Text: text}, args, func(rows driver.Rows) error {
		var at int64
		k = keyRow{}
		if err := rows.Scan(&at, &k.typ, &k.id, &k.tags); err != nil {
			return err
		}
		k.at = uint64(at)
		return f(&k)
	})
}

// positionOrZero returns a position that was selected, zero when there is none.
func positionOrZero(at int64, err error) (uint64, error) {
	if errors.Is(err, driver.ErrNoRows) {
		err = nil
	}
	return uint64(at), err
}

// row scans events.
type row struct {
	event          event.Sequenced
	position, time int64
	typ, id, tags  []byte
	lastType       string // types repeat, and need no copy of their own
	gone           bool   // the event is truncated
	digest         []byte // of the event before it was truncated
}

// scan reads a row and compares its checksum.
func (r *row) scan(rows driver.Rows) error {
	r.event, r.gone = event.Sequenced{}, false
	e := &r.event
	if err := rows.Scan(&r.position, &r.typ, &r.id, &r.tags, &r.time, &e.Data, &e.Metadata); err != nil {
		return err
	}
	return r.checkSum()
}

// decode makes an event of the row that was scanned.
func (r *row) decode() (err error) {
	e := &r.event
	if r.lastType != string(r.typ) {
		r.lastType = string(r.typ)
	}
	e.Position, e.Time, e.Type = uint64(r.position), time.UnixMicro(r.time).UTC(), r.lastType
	switch len(r.id) {
	case 0:
	case len(e.ID):
		e.ID = event.ID(r.id)
	default:
		return fmt.Errorf("event %d: %w: an ID of %d bytes", e.Position, driver.ErrCorrupt, len(r.id))
	}
	if e.Tags, err = decodeTags(string(r.tags)); err != nil {
		return fmt.Errorf("event %d: %w: %w", e.Position, driver.ErrCorrupt, err)
	}
	if len(e.Data) == 0 {
		e.Data = nil
	}
	if len(e.Metadata) == 0 {
		e.Metadata = nil
	}
	return nil
}
