package event

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/varvedb/varve/store/driver"
)

// Checkpoint moves a consumer from the position up to which it has handled
// events to a later position.
type Checkpoint struct {
	Consumer string // its name: UTF-8 of at most 256 bytes, without U+0000
	From     uint64 // its position before; zero before its first checkpoint
	To       uint64
}

// MaxConsumer is the number of bytes of a consumer's name.
const MaxConsumer = 256

// Validate checks the name. The error wraps ErrInvalid.
func (c *Checkpoint) Validate() error {
	if c.Consumer == "" || len(c.Consumer) > MaxConsumer || !utf8.ValidString(c.Consumer) || strings.ContainsRune(c.Consumer, 0) {
		return invalid("consumer %.40q: want a name of 1 to %d bytes of UTF-8 without U+0000", c.Consumer, MaxConsumer)
	}
	return nil
}

// ErrCheckpoint: a consumer is not where a checkpoint says. Another consumer
// has the same name, or an operator has moved it. It wraps driver.ErrConflict.
var ErrCheckpoint = fmt.Errorf("%w: the consumer's checkpoint is at another position", driver.ErrConflict)

// Checkpointer is a Store that also keeps the consumers' positions.
type Checkpointer interface {
	Store

	// Checkpoint returns the position up to which a consumer has handled events, zero
	// when the store does not know it.
	Checkpoint(ctx context.Context, consumer string) (uint64, error)

	// Advance appends events, or none, and moves a consumer; either both happen
	// or neither. It fails with ErrCheckpoint when the consumer is not where
	// the checkpoint says, and as Append does. After ErrUnknownOutcome, read
	// Checkpoint for the outcome. When all events have IDs, a repeated call
	// also repeats the checkpoint.
	Advance(ctx context.Context, c Checkpoint, events []Event, cond *Condition) ([]uint64, error)
}

// Consumer handles events one after the other, in order of position.
type Consumer struct {
	Name  string // in the store; only one of the name makes progress at a time
	Query Query

	// Handle handles an event, and may return events to append, with a
	// condition or without. They are stored together with the checkpoint, so
	// that each event causes them exactly once, even if the process dies. It is
	// called again for the same event when the condition fails, after an error,
	// and when it returned nothing and the process died before the next
	// checkpoint. Effects outside of the store must therefore be repeatable.
	Handle func(ctx context.Context, e *Sequenced) ([]Event, *Condition, error)

	// Every is how many events without resulting events are handled before the
	// checkpoint is stored. The checkpoint is also stored when the consumer has
	// reached the end of the log. Zero means 256.
	Every int
}

// Consume passes a consumer the events after its checkpoint, and then new ones
// as they are appended. It ends only with an error, including ctx's, after it
// has stored the checkpoint of the handled events. ErrCheckpoint means that
// another consumer uses the same name.
func Consume(ctx context.Context, s Checkpointer, c Consumer) (err error) {
	c.Every = cmp.Or(c.Every, 256)
	w := consuming{Consumer: c, store: s}
	if w.saved, err = s.Checkpoint(ctx, c.Name); err != nil {
		return w.error(err)
	}
	for w.handledTo = w.saved; err == nil; {
		if err = w.catchUp(ctx); err == nil {
			err = w.wait(ctx)
		}
	}
	if w.handled > 0 && !w.failed {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastCheckpointTimeout)
		defer cancel()
		err = errors.Join(err, w.save(last))
	}
	return w.error(err)
}

const (
	lastCheckpointTimeout = 5 * time.Second // time limit of the last checkpoint when a consumer ends
	maxSkipped            = 10_000          // number of skipped positions after which a checkpoint is stored
	maxAttempts           = 16              // maximum attempts when a condition fails
)

// consuming is a running consumer.
type consuming struct {
	Consumer
	store     Checkpointer
	saved     uint64 // the checkpoint in the store
	handledTo uint64 // up to here everything is handled
	handled   int    // events since saved
	failed    bool   // a checkpoint could not be stored
}

func (w *consuming) error(err error) error { return fmt.Errorf("consumer %q: %w", w.Name, err) }

// catchUp handles the stored events up to the end of the log.
func (w *consuming) catchUp(ctx context.Context) error {
	head := uint64(0)
	for ev, err := range w.store.Read(ctx, w.Query, &ReadOptions{From: w.next(), Head: &head}) {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			err = w.handle(ctx, &ev)
		}
		if err == nil && w.handled >= w.Every {
			err = w.save(ctx)
		}
		if err != nil {
			return err
		}
	}
	if w.handledTo = max(w.handledTo, head); w.handled == 0 && w.handledTo-w.saved < maxSkipped {
		return nil
	}
	return w.save(ctx)
}

func (w *consuming) next() uint64 { return min(w.handledTo, math.MaxUint64-1) + 1 }

// wait returns when there is a new event.
func (w *consuming) wait(ctx context.Context) error {
	for _, err := range w.store.Subscribe(ctx, w.Query, w.next()) {
		return err
	}
	return ctx.Err()
}

// handle handles one event and stores the resulting events.
func (w *consuming) handle(ctx context.Context, ev *Sequenced) error {
	for n := 1; ; n++ {
		events, cond, err := w.Handle(ctx, ev)
		if err != nil {
			return fmt.Errorf("event %d: %w", ev.Position, err)
		}
		if len(events) == 0 {
			w.handledTo = ev.Position
			w.handled++
			return nil
		}
		conflict := new(ConflictError)
		err = w.advance(ctx, ev.Position, events, cond)
		if err == nil || n >= maxAttempts || !errors.As(err, &conflict) {
			return err
		}
		if err := pause(ctx, n); err != nil {
			return err
		}
	}
}

func (w *consuming) save(ctx context.Context) error { return w.advance(ctx, w.handledTo, nil, nil) }

// advance stores events and the checkpoint. When the outcome is unknown, it
// reads the checkpoint to learn it.
func (w *consuming) advance(ctx context.Context, to uint64, events []Event, cond *Condition) error {
	_, err := w.store.Advance(ctx, Checkpoint{Consumer: w.Name, From: w.saved, To: to}, events, cond)
	if errors.Is(err, driver.ErrUnknownOutcome) {
		if is, again := w.store.Checkpoint(ctx, w.Name); again == nil && is == to {
			err = nil
		}
	}
	if w.failed = err != nil; !w.failed {
		w.saved, w.handledTo, w.handled = to, to, 0
	}
	return err
}
