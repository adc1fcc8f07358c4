package eventlog

import (
	"context"
	"slices"
	"strings"

	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/event"
)

var (
	eventsTable = &driver.Table{Name: "events", Columns: []driver.Column{
		{Name: "position", Type: driver.Int}, {Name: "type", Type: driver.Text}, {Name: "time", Type: driver.Int},
		{Name: "id", Type: driver.Blob}, {Name: "tags", Type: driver.Text}, {Name: "data", Type: driver.Blob},
		{Name: "metadata", Type: driver.Blob},
	}}
	tagsTable = &driver.Table{Name: "event_tags", Columns: []driver.Column{
		{Name: "tag", Type: driver.Text}, {Name: "position", Type: driver.Int}, {Name: "type", Type: driver.Text},
	}}
	idsTable = &driver.Table{Name: "event_ids", Columns: []driver.Column{
		{Name: "id", Type: driver.Blob}, {Name: "position", Type: driver.Int},
	}}
)

// sortedRows is the number of rows from which it pays to write them in the order
// of the tree they go into.
const sortedRows = 32

// Insert writes events at consecutive positions.
func (l *Log) Insert(ctx context.Context, tx driver.Tx, first uint64, micros int64, records []*Record) error {
	rows := make([]any, 0, len(records)*len(eventsTable.Columns))
	tags, ids := 0, 0
	for i, r := range records {
		e := r.Event
		var id []byte
		if !e.ID.IsZero() {
			id = e.ID[:]
			ids++
		}
		tags += len(r.tags)
		rows = append(rows, position(first+uint64(i)), e.Type, micros, filled(id), r.list, filled(e.Data), filled(e.Metadata))
	}
	if err := tx.Insert(ctx, eventsTable, rows); err != nil {
		return err
	}
	if l.tagged && tags > 0 {
		if err := tx.Insert(ctx, tagsTable, tagRows(first, records, tags)); err != nil {
			return err
		}
	}
	if ids == 0 {
		return nil
	}
	return tx.Insert(ctx, idsTable, idRows(first, records, ids))
}

var nothing = []byte{}

// filled keeps nil from becoming NULL.
func filled(b []byte) []byte {
	if b == nil {
		return nothing
	}
	return b
}

func tagRows(first uint64, records []*Record, n int) []any {
	type row struct {
		tag    string
		record int
	}
	list := make([]row, 0, n)
	for i, r := range records {
		for _, t := range r.tags {
			list = append(list, row{t, i})
		}
	}
	if n >= sortedRows {
		slices.SortStableFunc(list, func(a, b row) int { return strings.Compare(a.tag, b.tag) })
	}
	rows := make([]any, 0, 3*n)
	for _, r := range list {
		rows = append(rows, r.tag, position(first+uint64(r.record)), records[r.record].Event.Type)
	}
	return rows
}

func idRows(first uint64, records []*Record, n int) []any {
	rows := make([]any, 0, 2*n)
	for i, r := range records {
		if !r.Event.ID.IsZero() {
			rows = append(rows, r.Event.ID[:], position(first+uint64(i)))
		}
	}
	return rows
}

// idSizes are the IDs of one look-up, largest first.
var idSizes = []int{256, 16, 1}

// Positions returns where events with these IDs are, of those that are stored.
func (l *Log) Positions(ctx context.Context, q driver.Querier, ids []event.ID) (map[event.ID]uint64, error) {
	found := map[event.ID]uint64{}
	for _, size := range idSizes {
		for len(ids) >= size {
			if err := l.lookUp(ctx, q, ids[:size], found); err != nil {
				return nil, err
			}
			ids = ids[size:]
		}
	}
	return found, nil
}

func (l *Log) lookUp(ctx context.Context, q driver.Querier, ids []event.ID, found map[event.ID]uint64) error {
	text := l.texts.get([]byte{'i', byte(len(ids) >> 8), byte(len(ids))}, func() string {
		return "SELECT id, position FROM event_ids WHERE id IN (?" + strings.Repeat(", ?", len(ids)-1) + ")"
	})
	args := make([]any, len(ids))
	for i := range ids {
		args[i] = ids[i][:]
	}
	rows, err := q.Query(ctx, text, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id []byte
		var at int64
		if err := rows.Scan(&id, &at); err != nil {
			return err
		}
		if len(id) == len(event.ID{}) {
			found[event.ID(id)] = uint64(at)
		}
	}
	return rows.Err()
}
