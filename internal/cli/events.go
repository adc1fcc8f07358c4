package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"

	"github.com/varvedb/varve/internal/eventjson"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/event"
)

// eventsCmd is the commands of the event store. Events are lines of JSON.
type eventsCmd struct {
	Append eventsAppendCmd `cmd:"" help:"Append events, one of JSON a line, and print their positions."`
	Read   eventsReadCmd   `cmd:"" help:"Print the events that match."`
	Tail   eventsTailCmd   `cmd:"" help:"Print the events that match, and go on with those that are appended, until interrupted."`
	Stats  eventsStatsCmd  `cmd:"" help:"Print the number of events, by type, and the sizes of the database, as JSON."`
}

// eventFilter is a query in flags: one item.
type eventFilter struct {
	Type []string `help:"Only events of this type; given again, of one of the types."`
	Tag  []string `help:"Only events with this tag, key:value; given again, with all of the tags." placeholder:"KEY:VALUE"`
}

func (f *eventFilter) query() (store.EventQuery, error) {
	if len(f.Type) == 0 && len(f.Tag) == 0 {
		return event.All(), nil
	}
	item := store.EventItem{Types: f.Type}
	for _, text := range f.Tag {
		key, value, ok := strings.Cut(text, ":")
		if !ok {
			return store.EventQuery{}, usageError{fmt.Errorf("tag %q: want key:value", text)}
		}
		item.Tags = append(item.Tags, event.NewTag(key, value))
	}
	q := store.EventQuery{Items: []store.EventItem{item}}
	return q, q.Validate()
}

// withEvents opens a database and its event store.
func withEvents(ctx context.Context, url string, opts *store.Options, f func(db *store.DB, evs *store.Events) error) (err error) {
	db, err := store.Open(ctx, url, opts)
	if err != nil {
		return fmt.Errorf("events: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	evs, err := db.Events(ctx, store.EventOptions{})
	if err != nil {
		return err
	}
	return f(db, evs)
}

// eventsAppendCmd appends.
type eventsAppendCmd struct {
	URL        string   `arg:"" store:"" help:"Store to write. It is made when it does not exist."`
	File       string   `arg:"" optional:"" default:"-" help:"Lines of JSON: {\"type\":…, \"tags\":[[key,value],…], \"data\":any, \"metadata\":any, \"id\":uuid}; - is standard input."`
	Batch      int      `help:"Lines in one append, which is stored whole or not at all." default:"1"`
	UnlessType []string `help:"Refuse when an event of this type exists; given again, of one of the types."`
	UnlessTag  []string `help:"Refuse when an event with this tag exists; given again, with all of the tags." placeholder:"KEY:VALUE"`
	After      uint64   `help:"Of --unless: only events after this position count."`
}

// Run appends.
func (c *eventsAppendCmd) Run(e *env) error {
	if c.Batch < 1 {
		return usageError{fmt.Errorf("--batch %d: want a positive number", c.Batch)}
	}
	cond, err := c.condition()
	if err != nil {
		return err
	}
	in := io.Reader(os.Stdin)
	if c.File != "-" {
		f, err := os.Open(c.File)
		if err != nil {
			return err
		}
		defer f.Close()
		in = f
	}
	return withEvents(e.ctx, c.URL, nil, func(_ *store.DB, evs *store.Events) error {
		return c.append(e, evs, bufio.NewReader(in), cond)
	})
}

func (c *eventsAppendCmd) condition() (*store.Condition, error) {
	if len(c.UnlessType) == 0 && len(c.UnlessTag) == 0 {
		if c.After > 0 {
			return nil, usageError{errors.New("--after goes with --unless-type or --unless-tag")}
		}
		return nil, nil
	}
	q, err := (&eventFilter{Type: c.UnlessType, Tag: c.UnlessTag}).query()
	return &store.Condition{FailIfEventsMatch: q, After: c.After}, err
}

func (c *eventsAppendCmd) append(e *env, evs *store.Events, in *bufio.Reader, cond *store.Condition) error {
	var batch []store.Event
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		positions, err := evs.Append(e.ctx, batch, cond)
		if err != nil {
			return err
		}
		batch = batch[:0]
		for _, p := range positions {
			if _, err := fmt.Fprintf(e.stdout, "{\"position\":%d}\n", p); err != nil {
				return err
			}
		}
		return nil
	}
	for n := 1; ; n++ {
		line, err := in.ReadBytes('\n')
		if len(strings.TrimSpace(string(line))) > 0 {
			ev, err := eventjson.Parse(line)
			if err != nil {
				return fmt.Errorf("line %d: %w", n, err)
			}
			batch = append(batch, ev)
		}
		if errors.Is(err, io.EOF) {
			return flush()
		}
		if err != nil {
			return err
		}
		if len(batch) == c.Batch {
			if err := flush(); err != nil {
				return fmt.Errorf("up to line %d: %w", n, err)
			}
		}
	}
}

// eventsReadCmd reads.
type eventsReadCmd struct {
	URL       string `arg:"" store:"" help:"Store to read."`
	From      uint64 `help:"First position."`
	Backwards bool   `help:"From high positions to low ones."`
	Limit     int    `help:"Stop after so many events; 0 is no limit."`
	eventFilter
}

// Run reads.
func (c *eventsReadCmd) Run(e *env) error {
	q, err := c.query()
	if err != nil {
		return err
	}
	return withEvents(e.ctx, c.URL, readOnly, func(_ *store.DB, evs *store.Events) error {
		return printEvents(e.stdout, evs.Read(e.ctx, q, &store.EventReadOptions{From: c.From, Backwards: c.Backwards, Limit: c.Limit}), true)
	})
}

// printEvents writes lines, buffered until the end or line by line.
func printEvents(to io.Writer, events iter.Seq2[store.SequencedEvent, error], buffered bool) error {
	out := bufio.NewWriter(to)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	for ev, err := range events {
		if err == nil {
			err = enc.Encode(eventjson.Of(&ev))
		}
		if err == nil && !buffered {
			err = out.Flush()
		}
		if err != nil {
			return errors.Join(err, out.Flush())
		}
	}
	return out.Flush()
}

// eventsTailCmd follows.
type eventsTailCmd struct {
	URL  string `arg:"" store:"" help:"Store to follow."`
	From uint64 `help:"First position; 0 is the next event to come."`
	eventFilter
}

// Run follows.
func (c *eventsTailCmd) Run(e *env) error {
	q, err := c.query()
	if err != nil {
		return err
	}
	return withEvents(e.ctx, c.URL, readOnly, func(_ *store.DB, evs *store.Events) error {
		if c.From == 0 {
			head, err := evs.Head(e.ctx)
			if err != nil {
				return err
			}
			c.From = head + 1
		}
		return printEvents(e.stdout, evs.Subscribe(e.ctx, q, c.From), false)
	})
}

// eventsStatsCmd tells what there is.
type eventsStatsCmd struct {
	URL string `arg:"" store:"" help:"Store to read."`
}

// Run counts.
func (c *eventsStatsCmd) Run(e *env) error {
	return withEvents(e.ctx, c.URL, readOnly, func(db *store.DB, evs *store.Events) error {
		summary, err := evs.Summary(e.ctx)
		if err != nil {
			return err
		}
		stats, err := db.Stats(e.ctx)
		if err != nil {
			return err
		}
		return printJSON(e.stdout, struct {
			store.EventSummary
			Stats driver.Stats `json:"stats"`
		}{summary, stats})
	})
}
