package cli

import (
	"encoding/json"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/event"
)

// eventsCheckpointCmd is the commands of consumers' checkpoints.
type eventsCheckpointCmd struct {
	List eventsCheckpointListCmd `cmd:"" help:"Print where consumers are, as lines of JSON."`
	Set  eventsCheckpointSetCmd  `cmd:"" help:"Move a consumer, whose process should not run. It handles the events after the position."`
}

// eventsCheckpointListCmd lists.
type eventsCheckpointListCmd struct {
	URL string `arg:"" store:"" help:"Store to read."`
}

// checkpointLine is a consumer as printed.
type checkpointLine struct {
	Consumer string `json:"consumer"`
	Position uint64 `json:"position"`
	Behind   uint64 `json:"behind"` // positions up to the last event
}

// Run lists.
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

// eventsCheckpointSetCmd sets.
type eventsCheckpointSetCmd struct {
	URL      string `arg:"" store:"" help:"Store to write."`
	Consumer string `arg:"" help:"Name of the consumer. One that is not known becomes so."`
	Position uint64 `any:"" arg:"" help:"Position of the last event that it is not to handle; 0 for all events."`
}

// Run sets.
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
