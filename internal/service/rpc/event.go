package rpc

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	varvev1 "github.com/varvedb/varve/api/varve/v1"
	"github.com/varvedb/varve/internal/service"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/event"
)

// events implements EventService.
type events struct {
	varvev1.UnimplementedEventServiceServer
	service *service.Service
	ending  context.Context // done when the server goes down
}

// Append implements EventService.
func (s *events) Append(ctx context.Context, r *varvev1.AppendRequest) (*varvev1.AppendResponse, error) {
	list, err := eventsOf(r.GetEvents())
	if err != nil {
		return nil, err
	}
	positions, err := s.service.Events().Append(ctx, list, conditionOf(r.GetCondition()))
	if err != nil {
		return nil, err
	}
	return &varvev1.AppendResponse{Positions: positions}, nil
}

func conditionOf(m *varvev1.Condition) *event.Condition {
	if m == nil {
		return nil
	}
	return &event.Condition{FailIfEventsMatch: eventQuery(m.GetFailIfEventsMatch()), After: m.GetAfter()}
}

// Checkpoint implements EventService.
func (s *events) Checkpoint(ctx context.Context, r *varvev1.CheckpointRequest) (*varvev1.CheckpointResponse, error) {
	at, err := s.service.Events().Checkpoint(ctx, r.GetConsumer())
	if err != nil {
		return nil, err
	}
	return &varvev1.CheckpointResponse{Position: at}, nil
}

// Advance implements EventService.
func (s *events) Advance(ctx context.Context, r *varvev1.AdvanceRequest) (*varvev1.AppendResponse, error) {
	list, err := eventsOf(r.GetEvents())
	if err != nil {
		return nil, err
	}
	c := event.Checkpoint{Consumer: r.GetConsumer(), From: r.GetFrom(), To: r.GetTo()}
	positions, err := s.service.Events().Advance(ctx, c, list, conditionOf(r.GetCondition()))
	if err != nil {
		return nil, err
	}
	return &varvev1.AppendResponse{Positions: positions}, nil
}

// Head implements EventService.
func (s *events) Head(ctx context.Context, _ *varvev1.HeadRequest) (*varvev1.HeadResponse, error) {
	head, err := s.service.Events().Head(ctx)
	if err != nil {
		return nil, err
	}
	return &varvev1.HeadResponse{Position: head}, nil
}

// Read implements EventService.
func (s *events) Read(r *varvev1.ReadRequest, stream grpc.ServerStreamingServer[varvev1.ReadResponse]) error {
	opts := event.ReadOptions{
		From: r.GetFrom(), Since: timeOf(r.Since), Until: timeOf(r.Until),
		OnlyLast: r.GetOnlyLast(), Backwards: r.GetBackwards(), Limit: int(min(r.GetLimit(), math.MaxInt)),
	}
	ctx := stream.Context()
	rest, head, err := s.service.Events().ReadBatches(ctx, eventQuery(r.GetQuery()), opts, holdOf(ctx), func(list []event.Sequenced) error {
		return stream.Send(&varvev1.ReadResponse{Events: stored(list)})
	})
	if err != nil {
		return err
	}
	return stream.Send(&varvev1.ReadResponse{Events: stored(rest), End: &varvev1.ReadEnd{Head: head}})
}

// Subscribe implements EventService.
func (s *events) Subscribe(r *varvev1.SubscribeRequest, stream grpc.ServerStreamingServer[varvev1.SubscribeResponse]) error {
	q := eventQuery(r.GetQuery())
	if err := q.Validate(); err != nil {
		return fmt.Errorf("subscribe: %w", err)
	}
	if err := stream.SendHeader(nil); err != nil {
		return err
	}
	sub := service.Subscription{Protocol: "grpc", Query: q, From: r.GetFrom(), Ending: s.ending, Hold: holdOf(stream.Context())}
	return s.service.Events().Follow(stream.Context(), sub, func(list []event.Sequenced) error {
		return stream.Send(&varvev1.SubscribeResponse{Events: stored(list)})
	})
}

// timeOf converts a time of a request; zero when it has none.
func timeOf(micros *int64) time.Time {
	if micros == nil {
		return time.Time{}
	}
	t := time.UnixMicro(*micros)
	return service.TimeBound(&t)
}

// eventsOf converts the events of a request, which share its memory.
func eventsOf(messages []*varvev1.Event) ([]event.Event, error) {
	list := make([]event.Event, len(messages))
	for i, m := range messages {
		list[i] = event.Event{Type: m.GetType(), Tags: tagsOf(m.GetTags()), Data: m.GetData(), Metadata: m.GetMetadata()}
		switch id := m.GetId(); len(id) {
		case 0:
		case len(event.ID{}):
			list[i].ID = event.ID(id)
		default:
			return nil, fmt.Errorf("%w: event %d of %d: an ID of %d bytes, want %d", store.ErrInvalid, i+1, len(list), len(id), len(event.ID{}))
		}
	}
	return list, nil
}

func eventQuery(m *varvev1.EventQuery) event.Query {
	items := m.GetItems()
	if len(items) == 0 {
		return event.Query{}
	}
	q := event.Query{Items: make([]event.Item, len(items))}
	for i, item := range items {
		q.Items[i] = event.Item{Types: item.GetTypes(), Tags: tagsOf(item.GetTags())}
	}
	return q
}

func tagsOf(list []*varvev1.Tag) []event.Tag {
	if len(list) == 0 {
		return nil
	}
	all := make([]event.Tag, len(list))
	for i, t := range list {
		all[i] = event.NewTag(t.GetKey(), t.GetValue())
	}
	return all
}

// stored converts events into messages, with few allocations in total.
func stored(list []event.Sequenced) []*varvev1.StoredEvent {
	if len(list) == 0 {
		return nil
	}
	tags := 0
	for i := range list {
		tags += len(list[i].Tags)
	}
	type message struct {
		stored varvev1.StoredEvent
		event  varvev1.Event
	}
	all, tag, refs := make([]message, len(list)), make([]varvev1.Tag, tags), make([]*varvev1.Tag, tags)
	messages := make([]*varvev1.StoredEvent, len(list))
	for i := range list {
		e, m := &list[i], &all[i]
		m.event.Type, m.event.Data, m.event.Metadata = e.Type, e.Data, e.Metadata
		if !e.ID.IsZero() {
			id := e.ID // send must not keep the event
			m.event.Id = id[:]
		}
		n := len(e.Tags)
		for j := range e.Tags {
			tag[j].Key, tag[j].Value = e.Tags[j].Key, e.Tags[j].Value
			refs[j] = &tag[j]
		}
		m.event.Tags, tag, refs = refs[:n:n], tag[n:], refs[n:]
		m.stored.Position, m.stored.Time, m.stored.Event = e.Position, e.Time.UnixMicro(), &m.event
		messages[i] = &m.stored
	}
	return messages
}

// detailed adds the machine-readable part of an error to a status.
func detailed(st *status.Status, class service.Class, err error) *status.Status {
	info := &errdetails.ErrorInfo{Domain: "varve", Reason: strings.ToUpper(strings.ReplaceAll(class.Slug, "-", "_"))}
	var conflict *event.ConflictError
	var truncated *event.TruncatedError
	switch {
	case errors.As(err, &conflict):
		info.Metadata = map[string]string{
			"position": strconv.FormatUint(conflict.Position, 10),
			"item":     strconv.Itoa(conflict.Item),
			"after":    strconv.FormatUint(conflict.After, 10),
		}
	case errors.As(err, &truncated):
		info.Metadata = map[string]string{
			"position": strconv.FormatUint(truncated.Position, 10),
			"before":   strconv.FormatUint(truncated.Before, 10),
		}
	}
	if with, err := st.WithDetails(info); err == nil {
		return with
	}
	return st // texts can always be marshalled
}
