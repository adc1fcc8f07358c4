package rpc

import (
	"context"
	"fmt"

	varvev1 "github.com/varvedb/varve/api/varve/v1"
	"github.com/varvedb/varve/internal/service"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/event"
)

// events implements EventService.
type events struct {
	varvev1.UnimplementedEventServiceServer
	service *service.Service
}

// Append implements EventService.
func (s *events) Append(ctx context.Context, r *varvev1.AppendRequest) (*varvev1.AppendResponse, error) {
	list := make([]store.Event, len(r.GetEvents()))
	for i, m := range r.GetEvents() {
		list[i] = store.Event{Type: m.GetType(), Tags: tags(m.GetTags()), Data: m.GetData(), Metadata: m.GetMetadata()}
		switch id := m.GetId(); len(id) {
		case 0:
		case len(event.ID{}):
			list[i].ID = event.ID(id)
		default:
			return nil, fmt.Errorf("%w: event %d of %d: an ID of %d bytes, want %d", store.ErrInvalid, i+1, len(list), len(id), len(event.ID{}))
		}
	}
	positions, err := s.service.Append(ctx, list, condition(r.GetCondition()))
	if err != nil {
		return nil, err
	}
	return &varvev1.AppendResponse{Positions: positions}, nil
}

func condition(m *varvev1.Condition) *store.Condition {
	if m == nil {
		return nil
	}
	cond := &store.Condition{After: m.GetAfter()}
	for _, item := range m.GetFailIfEventsMatch().GetItems() {
		cond.FailIfEventsMatch.Items = append(cond.FailIfEventsMatch.Items,
			store.EventItem{Types: item.GetTypes(), Tags: tags(item.GetTags())})
	}
	return cond
}

func tags(list []*varvev1.Tag) []store.Tag {
	var all []store.Tag
	for _, t := range list {
		all = append(all, event.NewTag(t.GetKey(), t.GetValue()))
	}
	return all
}
