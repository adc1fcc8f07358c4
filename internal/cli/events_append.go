package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/varvedb/varve/internal/eventjson"
	"github.com/varvedb/varve/internal/source"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/event"
)

// eventsAppendCmd appends events from lines.
type eventsAppendCmd struct {
	URL        string   `arg:"" store:"" help:"Store to write. It is made when it does not exist."`
	File       string   `arg:"" optional:"" default:"-" help:"Lines of JSON: {\"type\":…, \"tags\":[[key,value],…], \"data\":any, \"metadata\":any, \"id\":uuid, \"time\":…}; - is standard input. A position is not looked at; a time is kept, and must not be before that of the last event."`
	Batch      int      `min:"1" max:"100000" help:"Lines in one append, which is stored whole or not at all." default:"1"`
	Now        bool     `help:"Replace the events' times by the current time."`
	UnlessType []string `help:"Refuse when an event of this type exists; given again, of one of the types." sep:"none"`
	UnlessTag  []string `help:"Refuse when an event with this tag exists; given again, with all of the tags." placeholder:"KEY:VALUE" sep:"none"`
	UnlessOr   []string `help:"Or refuse when an event of one of these types with all of these tags exists: type=A&type=B&tag=key:value; may be given again." placeholder:"ITEM" sep:"none"`
	After      uint64   `any:"" help:"With --unless-…: only events after this position count."`
}

// Run appends the events.
func (c *eventsAppendCmd) Run(e *env) error {
	cond, err := c.condition()
	if err != nil {
		return err
	}
	in, err := source.OpenText(c.File)
	if err != nil {
		return err
	}
	defer in.Close()
	return withEvents(e.ctx, c.URL, nil, func(_ *store.DB, evs *store.Events) error {
		return c.append(e, evs, in, cond)
	})
}

func (c *eventsAppendCmd) condition() (*event.Condition, error) {
	f := eventFilter{Type: c.UnlessType, Tag: c.UnlessTag, Or: c.UnlessOr}
	q, err := f.query()
	if err != nil || len(q.Items) > 0 {
		return &event.Condition{FailIfEventsMatch: q, After: c.After}, err
	}
	if c.After > 0 {
		return nil, usageError{errors.New("--after goes with --unless-type, --unless-tag or --unless-or")}
	}
	return nil, nil
}

func (c *eventsAppendCmd) append(e *env, evs *store.Events, in io.Reader, cond *event.Condition) error {
	var batch []event.Sequenced
	done := 0
	flush := func() error {
		positions, err := appendBatch(e.ctx, evs, batch, cond)
		if err != nil {
			return fmt.Errorf("events %d to %d of the file: %w", done+1, done+len(batch), err)
		}
		for _, p := range positions {
			if _, err := fmt.Fprintf(e.stdout, "{\"position\":%d}\n", p); err != nil {
				return err
			}
		}
		done += len(batch)
		batch = batch[:0]
		return nil
	}
	for ev, err := range eventjson.Lines(in) {
		if err != nil {
			return err
		}
		if c.Now {
			ev.Time = time.Time{}
		}
		if batch = append(batch, ev); len(batch) == c.Batch {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if len(batch) == 0 {
		return nil
	}
	return flush()
}

// appendBatch appends events; if any has a time, with their times.
func appendBatch(ctx context.Context, evs *store.Events, batch []event.Sequenced, cond *event.Condition) ([]uint64, error) {
	events, timed := make([]event.Event, len(batch)), false
	for i := range batch {
		events[i] = batch[i].Event
		timed = timed || !batch[i].Time.IsZero()
	}
	switch {
	case !timed:
		return evs.Append(ctx, events, cond)
	case cond != nil:
		return nil, usageError{errors.New("an event of the file has a time, and --unless-… is for events of now; add --now, or leave --unless-… out")}
	}
	positions, err := evs.AppendTimed(ctx, batch)
	if errors.Is(err, store.ErrInvalid) {
		err = fmt.Errorf("%w; with --now it gets the time of now", err)
	}
	return positions, err
}
