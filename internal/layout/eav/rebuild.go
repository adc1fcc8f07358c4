package eav

import (
	"bytes"
	"context"
	"fmt"

	"github.com/varvedb/varve/store/driver"
)

// Tables implements layout.Layout.
func (l *Layout) Tables() []*driver.Table {
	return []*driver.Table{l.shape.tables[inPayloads], l.shape.tables[inStrings], l.shape.tables[inNumbers]}
}

// rebuildValues is the number of values in one insert.
const rebuildValues = 20_000

// Rebuild implements layout.Layout. It rebuilds the attribute rows from the
// attributes in the payload rows.
func (l *Layout) Rebuild(ctx context.Context, tx driver.Tx, q driver.Querier) error {
	for _, t := range l.shape.tables[:inPayloads] {
		if _, err := tx.Exec(ctx, "DELETE FROM "+t.Name); err != nil {
			return fmt.Errorf("empty %s: %w", t.Name, err)
		}
	}
	p, err := l.follow(ctx, q, "check_payloads")
	if err != nil {
		return err
	}
	defer p.rows.Close()
	var b batch
	for p.key != nil {
		v := &versionRows{strings: map[string]string{}, numbers: map[string]uint64{}}
		if err := p.scanPayload(v); err != nil {
			return err
		}
		prefix := []any{bytes.Clone(p.key), p.from}
		if l.schema.Temporal {
			prefix = append(prefix, p.to)
		}
		for name, value := range v.strings {
			b.rows[inStrings] = append(append(b.rows[inStrings], prefix...), name, value)
		}
		for name, value := range v.numbers {
			b.rows[inNumbers] = append(append(b.rows[inNumbers], prefix...), name, value)
		}
		if err := p.next(); err != nil {
			return err
		}
		if len(b.rows[inStrings])+len(b.rows[inNumbers]) >= rebuildValues || p.key == nil {
			if err := b.insert(ctx, tx, l.shape); err != nil {
				return err
			}
		}
	}
	return nil
}
