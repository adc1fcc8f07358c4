package eav

import (
	"context"
	"fmt"

	"github.com/varvedb/varve/store/driver"
)

// Tables implements layout.Layout.
func (l *Layout) Tables() []*driver.Table {
	return []*driver.Table{l.shape.payloads, l.shape.strings, l.shape.numbers}
}

// rebuildRows is how many rows are written together.
const rebuildRows = 4096

// Rebuild implements layout.Layout: the attribute rows are what the payloads'
// rows repeat.
func (l *Layout) Rebuild(ctx context.Context, tx driver.Tx, q driver.Querier) error {
	for _, t := range []*driver.Table{l.shape.strings, l.shape.numbers} {
		if _, err := tx.Exec(ctx, "DELETE FROM "+t.Name); err != nil {
			return fmt.Errorf("empty %s: %w", t.Name, err)
		}
	}
	p, err := l.follow(ctx, q, "check_payloads")
	if err != nil {
		return err
	}
	defer p.rows.Close()
	b := &batch{}
	for p.key != nil {
		v := &versionRows{strings: map[string]string{}, numbers: map[string]uint64{}}
		if err := p.scanPayload(v); err != nil {
			return err
		}
		key, prefix := append([]byte(nil), p.key...), []any{p.from}
		if l.schema.Temporal {
			prefix = append(prefix, p.to)
		}
		for name, value := range v.strings {
			b.strings = append(append(append(b.strings, key), prefix...), name, value)
		}
		for name, value := range v.numbers {
			b.numbers = append(append(append(b.numbers, key), prefix...), name, value)
		}
		if err := p.next(); err != nil {
			return err
		}
		if len(b.strings)+len(b.numbers) >= rebuildRows*len(l.shape.strings.Columns) || p.key == nil {
			if err := l.flush(ctx, tx, b); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *Layout) flush(ctx context.Context, tx driver.Tx, b *batch) error {
	if err := tx.Insert(ctx, l.shape.strings, b.strings); err != nil {
		return fmt.Errorf("write string attributes: %w", err)
	}
	if err := tx.Insert(ctx, l.shape.numbers, b.numbers); err != nil {
		return fmt.Errorf("write numeric attributes: %w", err)
	}
	b.strings, b.numbers = nil, nil
	return nil
}
