package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/event"
)

// metaEventCheckpoints is recorded when the table of checkpoints exists. Older
// stores lack the table, and older programs do not know it.
const metaEventCheckpoints = "events.checkpoints"

var checkpointsTable = &driver.Table{Name: "event_checkpoints", Columns: []driver.Column{
	{Name: "consumer", Type: driver.Text}, {Name: "position", Type: driver.Int},
}}

var _ event.Checkpointer = (*Events)(nil)

// Checkpoint returns the position up to which a consumer has handled events, zero when the
// store does not know it.
func (e *Events) Checkpoint(ctx context.Context, consumer string) (at uint64, err error) {
	defer wrap(&err, "checkpoint")
	c := event.Checkpoint{Consumer: consumer}
	if err := c.Validate(); err != nil {
		return 0, err
	}
	err = e.readCheckpoints(ctx, func(ctx context.Context, q driver.Querier) error {
		at, _, err = e.checkpointOf(ctx, q, consumer)
		return err
	})
	return at, err
}

// Checkpoints returns the positions of all consumers, by name, in To.
func (e *Events) Checkpoints(ctx context.Context) (list []event.Checkpoint, err error) {
	defer wrap(&err, "list checkpoints")
	err = e.readCheckpoints(ctx, func(ctx context.Context, q driver.Querier) error {
		return e.sql.Each(ctx, q, "list", nil, func(rows driver.Rows) error {
			var name []byte
			var at int64
			err := rows.Scan(&name, &at)
			list = append(list, event.Checkpoint{Consumer: string(name), To: uint64(at)})
			return err
		})
	})
	return list, err
}

// readCheckpoints runs f in a view that has the table of checkpoints; without
// the table it does not run f.
func (e *Events) readCheckpoints(ctx context.Context, f func(context.Context, driver.Querier) error) error {
	return e.db.read(ctx, func(ctx context.Context, q driver.Querier) error {
		has, err := e.db.meta.all(ctx, q)
		if err != nil || has[metaEventCheckpoints] == "" {
			return err
		}
		if !e.checkpoints.Load() {
			if err := e.db.meta.missing(ctx, q, []*driver.Table{checkpointsTable}); err != nil {
				return err
			}
			e.checkpoints.Store(true)
		}
		return f(ctx, q)
	})
}

// missingCheckpoints returns the damage that DB.missing finds in the table of
// checkpoints, if the record says that there is one.
func (e *Events) missingCheckpoints(ctx context.Context) error {
	e.checkpoints.Store(false) // look again
	return e.readCheckpoints(ctx, func(context.Context, driver.Querier) error { return nil })
}

// rebuildCheckpoints creates the table again if it has no columns, and reports
// whether it did. Such a table cannot hold a consumer, so no checkpoint is
// lost. A missing table is left alone, because its checkpoints are lost as
// well.
func (e *Events) rebuildCheckpoints(ctx context.Context, tx driver.Tx) (bool, error) {
	has, err := e.db.meta.all(ctx, tx)
	if err != nil || has[metaEventCheckpoints] == "" {
		return false, err
	}
	tables, err := e.db.meta.columns(ctx, tx)
	columns, ok := tables[checkpointsTable.Name]
	if err != nil || !ok || slices.ContainsFunc(checkpointsTable.Columns, func(c driver.Column) bool {
		return slices.Contains(columns, c.Name)
	}) {
		return false, err
	}
	if _, err := tx.Exec(ctx, "DROP TABLE "+checkpointsTable.Name); err != nil {
		return false, err
	}
	return true, e.sql.create(ctx, tx)
}

// checkpointOf returns a consumer's position, and whether it is known.
func (e *Events) checkpointOf(ctx context.Context, q driver.Querier, consumer string) (uint64, bool, error) {
	var at int64
	err := e.sql.Row(ctx, q, "get", []any{consumer}, &at)
	if errors.Is(err, driver.ErrNoRows) {
		return 0, false, nil
	}
	return uint64(at), err == nil, err
}

// Advance appends events, or none, and moves a consumer. Both happen in one
// transaction, which other appends may share. It fails with event.ErrCheckpoint
// when the consumer is not where the checkpoint says, with ErrInvalid when the
// checkpoint is above the last event before these, and otherwise as Append
// does. When all events have IDs, a repeated call also repeats the checkpoint.
// The first checkpoint of a store creates the table of checkpoints, in an
// earlier transaction.
func (e *Events) Advance(ctx context.Context, c event.Checkpoint, events []event.Event, cond *event.Condition) (positions []uint64, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("advance consumer %q to %d: %w", c.Consumer, c.To, err)
		}
	}()
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if len(events) > 0 {
		err = event.Validate(events)
	}
	if err != nil {
		return nil, err
	}
	r, err := newAppendRequest(ctx, events, cond)
	if err != nil {
		return nil, err
	}
	if err := e.makeCheckpoints(ctx); err != nil {
		return nil, err
	}
	r.within = func(ctx context.Context, tx driver.Tx, known bool) (verdict, err error) {
		return e.moveCheckpoint(ctx, tx, c, known)
	}
	return e.append(ctx, r)
}

// makeCheckpoints creates the table if it is missing.
func (e *Events) makeCheckpoints(ctx context.Context) error {
	if e.checkpoints.Load() {
		return nil
	}
	_, err := e.db.create(ctx, metaEventCheckpoints, map[string]string{metaEventCheckpoints: "1"}, e.sql.create)
	if err == nil {
		err = e.db.missing(ctx, checkpointsTable)
	}
	e.checkpoints.Store(err == nil)
	return err
}

// moveCheckpoint moves a consumer. It refuses if the consumer is elsewhere, or
// if the checkpoint is above the head, because the consumer would then miss the
// next events. Known reports that the events are stored already, and the
// consumer was moved with them.
func (e *Events) moveCheckpoint(ctx context.Context, tx driver.Tx, c event.Checkpoint, known bool) (verdict, err error) {
	at, found, err := e.checkpointOf(ctx, tx, c.Consumer)
	switch head := e.tail.Head(); {
	case err != nil || known && at == c.To:
		return nil, err
	case at != c.From:
		return fmt.Errorf("%w: at %d, not at %d", event.ErrCheckpoint, at, c.From), nil
	case c.To > head:
		return fmt.Errorf("%w: the last event is %d: the consumer would miss those up to %d", ErrInvalid, head, c.To), nil
	case found:
		err = e.sql.Exec(ctx, tx, "update", int64(c.To), c.Consumer)
	default:
		err = e.sql.Exec(ctx, tx, "insert", c.Consumer, int64(c.To))
	}
	return nil, err
}
