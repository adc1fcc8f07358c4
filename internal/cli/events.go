package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/url"
	"strings"

	"github.com/varvedb/varve/internal/eventjson"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/event"
)

// eventsCmd has the commands of the event store. Events are JSON lines.
type eventsCmd struct {
	Append     eventsAppendCmd     `cmd:"" help:"Append events, one of JSON a line, and print their positions."`
	Read       eventsReadCmd       `cmd:"" help:"Print the events that match."`
	Tail       eventsTailCmd       `cmd:"" help:"Print the events that match, and then each new one that is appended, until interrupted."`
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

// eventsReadCmd prints stored events.
type eventsReadCmd struct {
	URL       string `arg:"" store:"" help:"Store to read."`
	From      uint64 `any:"" help:"First position."`
	Backwards bool   `help:"From high positions to low ones."`
	Limit     int    `min:"0" max:"1000000000000" help:"Stop after so many events; 0 is no limit."`
	eventFilter
}

// Run prints the events.
func (c *eventsReadCmd) Run(e *env) error {
	q, err := c.query()
	if err != nil {
		return err
	}
	return withEvents(e.ctx, c.URL, readOnly, func(_ *store.DB, evs *store.Events) error {
		return printEvents(e.stdout, evs.Read(e.ctx, q, &event.ReadOptions{From: c.From, Backwards: c.Backwards, Limit: c.Limit}), true)
	})
}

// printEvents writes events as lines, buffered until the end or line by line.
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

// eventsTailCmd prints events as they are appended.
type eventsTailCmd struct {
	URL  string `arg:"" store:"" help:"Store to follow."`
	From uint64 `any:"" help:"First position; 0 is the next event to come."`
	eventFilter
}

// Run prints events until it is interrupted.
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

// eventsStatsCmd prints counts and sizes.
type eventsStatsCmd struct {
	URL string `arg:"" store:"" help:"Store to read."`
}

// Run prints the counts.
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

// eventsCheckpointCmd has the commands for consumers' checkpoints.
type eventsCheckpointCmd struct {
	List eventsCheckpointListCmd `cmd:"" help:"Print the checkpoints of consumers, as lines of JSON."`
	Set  eventsCheckpointSetCmd  `cmd:"" help:"Move a consumer, whose process should not run. It handles the events after the position."`
}

// eventsCheckpointListCmd lists the checkpoints.
type eventsCheckpointListCmd struct {
	URL string `arg:"" store:"" help:"Store to read."`
}

// checkpointLine is a consumer as printed.
type checkpointLine struct {
	Consumer string `json:"consumer"`
	Position uint64 `json:"position"`
	Behind   uint64 `json:"behind"` // positions up to the last event
}

// Run lists the checkpoints.
func (c *eventsCheckpointListCmd) Run(e *env) error {
	return withEvents(e.ctx, c.URL, readOnly, func(_ *store.DB, evs *store.Events) error {
		list, err := evs.Checkpoints(e.ctx)
		if err != nil {
			return err
		}
		head, err := evs.Head(e.ctx)
		if err != nil {
			return err
		}
		out := json.NewEncoder(e.stdout)
		for _, one := range list {
			line := checkpointLine{Consumer: one.Consumer, Position: one.To, Behind: max(head, one.To) - one.To}
			if err := out.Encode(line); err != nil {
				return err
			}
		}
		return nil
	})
}

// eventsCheckpointSetCmd moves a checkpoint.
type eventsCheckpointSetCmd struct {
	URL      string `arg:"" store:"" help:"Store to write."`
	Consumer string `arg:"" help:"Name of the consumer, also a new one."`
	Position uint64 `any:"" arg:"" help:"Position of the last event that it has handled; 0 for none."`
}

// Run moves the checkpoint.
func (c *eventsCheckpointSetCmd) Run(e *env) error {
	return withEvents(e.ctx, c.URL, nil, func(_ *store.DB, evs *store.Events) error {
		from, err := evs.Checkpoint(e.ctx, c.Consumer)
		if err != nil {
			return err
		}
		_, err = evs.Advance(e.ctx, event.Checkpoint{Consumer: c.Consumer, From: from, To: c.Position}, nil, nil)
		return err
	})
}

// eventFilter holds a query in flags: one item by single flags, further items
// as text.
type eventFilter struct {
	Type []string `help:"Only events of this type; given again, of one of the types." sep:"none"`
	Tag  []string `help:"Only events with this tag, key:value; given again, with all of the tags." placeholder:"KEY:VALUE" sep:"none"`
	Or   []string `help:"Or events of one of these types with all of these tags, written as in a URL: type=A&type=B&tag=key:value; may be given again." placeholder:"ITEM" sep:"none"`
}

func (f *eventFilter) query() (q event.Query, err error) {
	if len(f.Type) > 0 || len(f.Tag) > 0 {
		q.Items = append(q.Items, event.Item{Types: f.Type})
		if q.Items[0].Tags, err = parseTags(f.Tag); err != nil {
			return q, err
		}
	}
	for _, text := range f.Or {
		item, err := parseItem(text)
		if err != nil {
			return q, err
		}
		q.Items = append(q.Items, item)
	}
	if err := q.Validate(); err != nil {
		return q, usageError{err}
	}
	return q, nil
}

// parseItem parses one alternative of a query.
func parseItem(text string) (item event.Item, err error) {
	values, err := url.ParseQuery(text)
	if err != nil {
		return item, usageError{fmt.Errorf("item %q: %w", text, err)}
	}
	for name := range values {
		if name != "type" && name != "tag" {
			return item, usageError{fmt.Errorf("item %q: %q: want type=… and tag=key:value, with & between them", text, name)}
		}
	}
	item.Types = values["type"]
	item.Tags, err = parseTags(values["tag"])
	return item, err
}

func parseTags(texts []string) (tags []event.Tag, err error) {
	for _, text := range texts {
		key, value, ok := strings.Cut(text, ":")
		if !ok {
			return nil, usageError{fmt.Errorf("tag %q: want key:value", text)}
		}
		tags = append(tags, event.NewTag(key, value))
	}
	return tags, nil
}
