package store

import (
	"context"

	"github.com/varvedb/varve/store/event"
)

// Project is event.Project on this store.
func (e *Events) Project(ctx context.Context, projectors ...event.Projector) (*event.Condition, error) {
	return event.Project(ctx, e, projectors...)
}
