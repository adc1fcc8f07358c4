package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"

	"github.com/varvedb/varve/internal/eventjson"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/event"
)

// eventsCmd is the commands of the event store. Events are lines of JSON.
type eventsCmd struct {
	Append     eventsAppendCmd     `cmd:"" help:"Append events, one of JSON a line, and print their positions."`
	Read       eventsReadCmd       `cmd:"" help:"Print the events that match."`
	Tail       eventsTailCmd       `cmd:"" help:"Print the events that match, and go on with those that are appended, until interrupted."`
	Export     eventsExportCmd     `cmd:"" help:"Write all events to a file, from which import makes the same store."`
	Import     eventsImportCmd     `cmd:"" help:"Read events from a file of export, with their positions and times."`
	Checkpoint eventsCheckpointCmd `cmd:"" help:"List the consumers of events, or move one."`
	Truncate   eventsTruncateCmd   `cmd:"" help:"Remove the data of old events for good; conditions keep their answers."`
	Stats      eventsStatsCmd      `cmd:"" help:"Print the number of events, by type, and the sizes of the database, as JSON."`
}

// withEvents opens a database and its event store.
func withEvents(ctx context.Context, url string, opts *store.Options, f func(db *store.DB, evs *store.Events) error) (err error) {
	db, err := store.Open(ctx, url, opts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	evs, err := db.Events(ctx, nil)
	if err != nil {
		return err
	}
	return f(db, evs)
}

// eventsReadCmd reads.
type eventsReadCmd struct {
	URL       string `arg:"" store:"" help:"Store to read."`
	From      uint64 `any:"" help:"First position."`
	Backwards bool   `help:"From high positions to low ones."`
	Limit     int    `min:"0" max:"1000000000000" help:"Stop after so many events; 0 is no limit."`
	eventFilter
}

// Run reads.
func (c *eventsReadCmd) Run(e *env) error {
	q, err := c.query()
	if err != nil {
		return err
	}
	return withEvents(e.ctx, c.URL, readOnly, func(_ *store.DB, evs *store.Events) error {
		return printEvents(e.stdout, evs.Read(e.ctx, q, &event.ReadOptions{From: c.From, Backwards: c.Backwards, Limit: c.Limit}), true)
	})
}

// printEvents writes lines, buffered until the end or line by line.
func printEvents(to io.Writer, events iter.Seq2[event.Sequenced, error], buffered bool) error {
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
	From uint64 `any:"" help:"First position; 0 is the next event to come."`
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
		stats, err := db.Engine().Stats(e.ctx)
		if err != nil {
			return err
		}
		return printJSON(e.stdout, struct {
			store.EventSummary
			Stats driver.Stats `json:"stats"`
		}{summary, stats})
	})
}
