package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"

	"github.com/varvedb/varve/internal/eventjson"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/event"
)

// eventsTruncateCmd removes the data of old events.
type eventsTruncateCmd struct {
	URL       string `arg:"" store:"" help:"Store to write."`
	Before    uint64 `any:"" required:"" help:"Position of the first event that stays whole."`
	Archive   string `help:"File to write the events to first, as export does. One that is there already must have them: it is compared." xor:"archive" required:""`
	NoArchive bool   `help:"Remove the data without a copy." xor:"archive" required:""`
	Unread    bool   `help:"Also what a consumer has not handled by its checkpoint."`
}

// Run truncates.
func (c *eventsTruncateCmd) Run(e *env) error {
	return withEvents(e.ctx, c.URL, nil, func(_ *store.DB, evs *store.Events) error {
		from, err := evs.Horizon(e.ctx)
		if err != nil {
			return err
		}
		head, err := evs.Head(e.ctx)
		switch {
		case err != nil:
			return err
		case c.Before > head+1:
			return usageError{fmt.Errorf("--before %d: the last event is %d", c.Before, head)}
		case from >= c.Before:
			return nil
		}
		if err := c.unread(e, evs); err != nil {
			return err
		}
		if !c.NoArchive {
			if err := c.archive(e, evs, from); err != nil {
				return err
			}
		}
		bar := startBar(e.stderr, "truncate", "events", int64(c.Before-1))
		defer bar.Finish()
		bar.Begin(int64(from - 1))
		return evs.Truncate(e.ctx, c.Before, func(at uint64) { bar.Set(int64(at - 1)) })
	})
}

// unread fails when a consumer would come to truncated events.
func (c *eventsTruncateCmd) unread(e *env, evs *store.Events) error {
	list, err := evs.Checkpoints(e.ctx)
	for _, one := range list {
		if one.To+1 < c.Before && !c.Unread {
			err = errors.Join(err, fmt.Errorf("consumer %q has handled events up to %d only; let it go on, or truncate with --unread", one.Consumer, one.To))
		}
	}
	return err
}

// archive writes the events from a position on to the file, unless it is there, and
// compares what the file has with the store.
func (c *eventsTruncateCmd) archive(e *env, evs *store.Events, from uint64) error {
	_, err := os.Stat(c.Archive)
	if errors.Is(err, fs.ErrNotExist) {
		err = exportFile(e, evs, c.Archive, from, c.Before-1)
	}
	if err != nil {
		return err
	}
	in, end, err := openEventFile(c.Archive)
	if err != nil {
		return err
	}
	defer end()
	if err := c.compare(e, evs, eventjson.Lines(in), from); err != nil {
		return fmt.Errorf("archive %s: %w; nothing was truncated", c.Archive, err)
	}
	return nil
}

// compare checks that a file has the events from a position on that are to be truncated.
func (c *eventsTruncateCmd) compare(e *env, evs *store.Events, file iter.Seq2[event.Sequenced, error], from uint64) error {
	next, stop := iter.Pull2(file)
	defer stop()
	for want, err := range evs.Read(e.ctx, event.All(), &event.ReadOptions{From: from}) {
		if err != nil || want.Position >= c.Before {
			return err
		}
		has, err, ok := next()
		for ok && err == nil && has.Position < from { // truncated before
			has, err, ok = next()
		}
		switch {
		case err != nil:
			return err
		case !ok:
			return fmt.Errorf("it ends before event %d", want.Position)
		case has.Position != want.Position || !has.Time.Equal(want.Time) || !has.Equal(&want.Event):
			return fmt.Errorf("it does not have event %d as the store has it", want.Position)
		}
	}
	return nil
}
