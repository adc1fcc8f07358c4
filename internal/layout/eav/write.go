package eav

import (
	"context"

	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
)

// batch collects, by table, the rows of a block and the keys of the versions
// that it closes, to write them together.
type batch struct{ rows, closed [tables][]any }

// insert writes the collected rows and empties the lists.
func (b *batch) insert(ctx context.Context, tx driver.Tx, into *shape) error {
	for i, table := range into.tables {
		if err := tx.Insert(ctx, table, b.rows[i]); err != nil {
			return err
		}
		b.rows[i] = nil
	}
	return nil
}

// Write implements layout.Writer.
func (w writer) Write(ctx context.Context, set entity.Changeset) error {
	var b batch
	for i := range set.Changes {
		c := &set.Changes[i]
		if c.Old != nil && w.schema.Temporal {
			b.addClosed(c.Old)
		}
		if c.New != nil {
			b.addRows(w.schema.Temporal, c.New)
		}
	}

	// Close the old versions; without history, delete the rows of every changed
	// key. A key without an old version may still have rows of an expired one.
	if w.schema.Temporal {
		for i, closing := range w.closing {
			if err := w.tx.Update(ctx, closing, int64(set.Block), b.closed[i]); err != nil {
				return err
			}
		}
	} else {
		keys := make([]any, len(set.Changes))
		for i := range set.Changes {
			keys[i] = set.Changes[i].Key[:]
		}
		for _, name := range []string{"delete_strings", "delete_numbers", "delete_payloads"} {
			if err := w.sql.ExecIn(ctx, w.tx, name, 1, keys); err != nil {
				return err
			}
		}
	}
	return b.insert(ctx, w.tx, w.shape)
}

// addClosed adds the keys of a version's rows.
func (b *batch) addClosed(e *entity.Entity) {
	key, from := e.Key[:], int64(e.LastModifiedAtBlock)
	for _, a := range textsOf(e) {
		b.closed[inStrings] = append(b.closed[inStrings], key, a.name, from)
	}
	for _, a := range numbersOf(e) {
		b.closed[inNumbers] = append(b.closed[inNumbers], key, a.name, from)
	}
	b.closed[inPayloads] = append(b.closed[inPayloads], key, from)
}

// addRows adds a new version's rows.
func (b *batch) addRows(temporal bool, e *entity.Entity) {
	texts, numbers := textsOf(e), numbersOf(e)
	key := any(e.Key[:])
	from, to := any(int64(e.LastModifiedAtBlock)), any(int64(e.Expiration))
	version := []any{key, from, to}
	if !temporal {
		version = version[:2]
	}
	for _, a := range texts {
		b.rows[inStrings] = append(append(b.rows[inStrings], version...), a.name, a.value)
	}
	for _, a := range numbers {
		b.rows[inNumbers] = append(append(b.rows[inNumbers], version...), a.name, a.value)
	}
	content := e.Content
	if content == nil {
		content = []byte{}
	}
	textJSON, numberJSON := encodeAttributes(texts, numbers)
	b.rows[inPayloads] = append(b.rows[inPayloads], key, from, to, content, e.ContentType, textJSON, numberJSON)
}

// Rewind implements layout.Writer. The numbers are rewound last, because the
// other tables read their expirations there.
func (w writer) Rewind(ctx context.Context, head uint64, to int64) error {
	newer := []string{"rewind_delete_strings", "rewind_delete_numbers", "rewind_delete_payloads"}
	ended := []string{"rewind_reopen_strings", "rewind_reopen_payloads", "rewind_reopen_numbers"}
	if err := w.each(ctx, newer, to); err != nil {
		return err
	}
	return w.each(ctx, ended, to, int64(head))
}

// Prune implements layout.Writer.
func (w writer) Prune(ctx context.Context, before uint64) error {
	return w.each(ctx, []string{"prune_strings", "prune_numbers", "prune_payloads"}, int64(before))
}

// each runs several statements with the same arguments.
func (w writer) each(ctx context.Context, names []string, args ...any) error {
	for _, name := range names {
		if err := w.sql.Exec(ctx, w.tx, name, args...); err != nil {
			return err
		}
	}
	return nil
}
