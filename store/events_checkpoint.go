package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/varvedb/varve/schemas"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/event"
)

// metaEventCheckpoints is recorded once the table of checkpoints is there. Stores were made
// before there was one, and are read by programs that do not know it.
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
	err = e.readCheckpoints(ctx, func(ctx context.Context, q driver.Querier, sql schemas.Meta) error {
		at, _, err = checkpointOf(ctx, q, sql, consumer)
		return err
	})
	return at, err
}

// Checkpoints returns where all consumers are, by name, in To.
func (e *Events) Checkpoints(ctx context.Context) (list []event.Checkpoint, err error) {
	defer wrap(&err, "list checkpoints")
	err = e.readCheckpoints(ctx, func(ctx context.Context, q driver.Querier, sql schemas.Meta) (err error) {
		rows, err := q.Query(ctx, sql.Statements["list"])
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, rows.Close()) }()
		for rows.Next() {
			var name []byte
			var at int64
			if err := rows.Scan(&name, &at); err != nil {
				return err
			}
			list = append(list, event.Checkpoint{Consumer: string(name), To: uint64(at)})
		}
		return rows.Err()
	})
	return list, err
}

// readCheckpoints runs f in a view that has the table of checkpoints, or not at all.
func (e *Events) readCheckpoints(ctx context.Context, f func(context.Context, driver.Querier, schemas.Meta) error) error {
	sql, err := schemas.CheckpointTables(string(e.db.engine.Info().Dialect))
	if err != nil {
		return err
	}
	return e.db.read(ctx, func(ctx context.Context, q driver.Querier) error {
		has, err := e.db.meta.all(ctx, q)
		if err != nil || has[metaEventCheckpoints] == "" {
			return err
		}
		return f(ctx, q, sql)
	})
}

// checkpointOf returns where a consumer is, and whether it is known.
func checkpointOf(ctx context.Context, q driver.Querier, sql schemas.Meta, consumer string) (uint64, bool, error) {
	var at int64
	err := driver.QueryRow(ctx, q, sql.Statements["get"], []any{consumer}, &at)
	if errors.Is(err, driver.ErrNoRows) {
		return 0, false, nil
	}
	return uint64(at), err == nil, err
}

// Advance appends events, of which there may be none, and moves a consumer, both or
// neither, in a transaction that it shares with other appends. It fails with event.ErrCheckpoint
// when the consumer is not where the checkpoint says, with ErrInvalid when it says more than
// the last event before these, and otherwise as Append does. A repetition of events that all
// have IDs is one of the checkpoint, too. The first checkpoint of a store makes the table for
// them, in a transaction before.
func (e *Events) Advance(ctx context.Context, c event.Checkpoint, events []event.Event, cond *event.Condition) ([]uint64, error) {
	positions, err := e.advance(ctx, c, events, cond)
	if err != nil {
		return nil, fmt.Errorf("advance consumer %q to %d: %w", c.Consumer, c.To, err)
	}
	return positions, nil
}

func (e *Events) advance(ctx context.Context, c event.Checkpoint, events []event.Event, cond *event.Condition) ([]uint64, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	request := newAppendRequest
	if len(events) > 0 {
		request = validRequest
	}
	r, err := request(events, cond)
	if err != nil {
		return nil, err
	}
	sql, err := e.makeCheckpoints(ctx)
	if err != nil {
		return nil, err
	}
	r.cancelled = ctx.Err
	r.within = func(ctx context.Context, tx driver.Tx, known bool) (verdict, err error) {
		return moveCheckpoint(ctx, tx, sql, c, known, e.tail.Head())
	}
	err = e.append(ctx, r)
	return r.positions, err
}

// makeCheckpoints makes the table if it is not there.
func (e *Events) makeCheckpoints(ctx context.Context) (schemas.Meta, error) {
	sql, err := schemas.CheckpointTables(string(e.db.engine.Info().Dialect))
	if err != nil || e.checkpoints.Load() {
		return sql, err
	}
	_, err = e.db.create(ctx, metaEventCheckpoints, map[string]string{metaEventCheckpoints: "1"}, func(ctx context.Context, tx driver.Tx) error {
		return createCheckpoints(ctx, tx, sql)
	})
	e.checkpoints.Store(err == nil)
	return sql, err
}

func createCheckpoints(ctx context.Context, tx driver.Tx, sql schemas.Meta) error {
	for _, text := range sql.Tables {
		if _, err := tx.Exec(ctx, text); err != nil {
			return fmt.Errorf("create the table of checkpoints: %w", err)
		}
	}
	return nil
}

// moveCheckpoint moves a consumer, unless it is elsewhere or would pass the head, and then
// miss what comes next. Known says that the events are stored already, and the consumer
// moved with them.
func moveCheckpoint(ctx context.Context, tx driver.Tx, sql schemas.Meta, c event.Checkpoint, known bool, head uint64) (verdict, err error) {
	at, found, err := checkpointOf(ctx, tx, sql, c.Consumer)
	switch {
	case err != nil || known && at == c.To:
		return nil, err
	case at != c.From:
		return fmt.Errorf("%w: at %d, not at %d", event.ErrCheckpoint, at, c.From), nil
	case c.To > head:
		return fmt.Errorf("%w: the last event is %d: the consumer would miss those up to %d", ErrInvalid, head, c.To), nil
	case found:
		_, err = tx.Exec(ctx, sql.Statements["update"], int64(c.To), c.Consumer)
	default:
		_, err = tx.Exec(ctx, sql.Statements["insert"], c.Consumer, int64(c.To))
	}
	return nil, err
}
