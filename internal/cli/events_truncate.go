package cli

import (
	"errors"
	"fmt"

	"github.com/varvedb/varve/store"
)

// eventsTruncateCmd removes the data of old events.
type eventsTruncateCmd struct {
	URL       string `arg:"" store:"" help:"Store to write."`
	Before    uint64 `any:"" required:"" help:"Position of the first event that stays whole."`
	Archive   string `help:"File to write the events to first, as export does. It must not exist." xor:"archive" required:""`
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
		if exists(c.Archive) {
			return fmt.Errorf("archive %s exists already: name another file, or give --no-archive where it has the events", c.Archive)
		}
		if !c.NoArchive {
			if err := exportFile(e, evs, c.Archive, from, c.Before-1); err != nil {
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
