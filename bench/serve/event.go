package serve

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/client"
	"github.com/varvedb/varve/internal/service"
	"github.com/varvedb/varve/internal/service/server"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/event"
)

// EventProtocols are the ways to the event store of a service.
var EventProtocols = []string{"local", "grpc"}

// EventWorkload is requests of one kind to an event store.
type EventWorkload struct {
	Name    string
	Clients int // on one connection

	request func(ctx context.Context, events store.EventStore, n uint64) error
}

// EventWorkloads are all.
var EventWorkloads = []EventWorkload{
	{"append", 1, appendOne}, {"append", 16, appendOne}, {"append", 128, appendOne},
	{"append-if-new", 16, appendIfNew},
	{"decide", 1, decide}, {"decide", 16, decide},
}

// eachEvents is requests of a client in a round.
const eachEvents = 100

// Run serves a database that has events and measures rounds of requests until the loop
// ends. The head must be what they come to.
func (w EventWorkload) Run(ctx context.Context, db *store.DB, protocol string, loop bench.Loop) (res bench.Result, err error) {
	res = bench.NewResult()
	svc, err := service.New(ctx, db, service.Options{})
	if err != nil {
		return res, err
	}
	defer svc.Close()
	events, stop, err := connectEvents(ctx, svc, protocol)
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	request := func(ctx context.Context, _ int) error { return w.request(ctx, events, newest.Add(1)) }
	warm := bench.NewResult()
	if err := warm.Clients(ctx, w.Clients, warmUp, request); err != nil {
		return res, err
	}
	before, err := events.Head(ctx)
	if err != nil {
		return res, err
	}
	for loop() {
		if err := res.Clients(ctx, w.Clients, eachEvents, request); err != nil {
			return res, err
		}
		res.Events += uint64(w.Clients * eachEvents)
	}
	after, err := events.Head(ctx)
	if err == nil && after-before != res.Events {
		err = fmt.Errorf("%w: head %d, was %d before %d events", bench.ErrMismatch, after, before, res.Events)
	}
	return res, err
}

// connectEvents returns the event store of a service, which listens until stop.
func connectEvents(ctx context.Context, svc *service.Service, protocol string) (events store.EventStore, stop func() error, err error) {
	switch protocol {
	case "local":
		return svc.Events(), func() error { return nil }, nil
	case "grpc":
	default:
		return nil, nil, fmt.Errorf("unknown protocol %q", protocol)
	}
	srv, err := server.Listen(ctx, svc, server.Options{REST: "off"})
	if err != nil {
		return nil, nil, err
	}
	running, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- srv.Run(running) }()
	remote, err := client.Dial(srv.GRPC(), nil)
	if err != nil {
		cancel()
		return nil, nil, errors.Join(err, <-done)
	}
	return remote, func() error {
		err := remote.Close()
		cancel()
		return errors.Join(err, <-done)
	}, nil
}

// newest numbers students so that no two of a process have the same tag.
var newest atomic.Uint64

// enrolment is one of a new student in one of 1,000 courses.
func enrolment(n uint64) store.Event {
	student, course := fmt.Sprintf("served-%d", n), fmt.Sprintf("course-%d", n%1000)
	return store.Event{
		Type: "StudentEnrolledInCourse",
		Tags: []store.Tag{event.NewTag("student_id", student), event.NewTag("course_id", course), event.NewTag("grade", "A")},
		Data: fmt.Appendf(nil, `{"studentId":%q,"courseId":%q}`, student, course),
	}
}

func appendOne(ctx context.Context, events store.EventStore, n uint64) error {
	_, err := events.Append(ctx, []store.Event{enrolment(n)}, nil)
	return err
}

// appendIfNew appends unless the student is enrolled.
func appendIfNew(ctx context.Context, events store.EventStore, n uint64) error {
	e := enrolment(n)
	_, err := events.Append(ctx, []store.Event{e}, event.Unless(event.Typed(e.Type, e.Tags[0])))
	return err
}

// decide reads whether the student is enrolled, and appends under the condition that
// nothing has come in between.
func decide(ctx context.Context, events store.EventStore, n uint64) error {
	e := enrolment(n)
	enrolled := event.NewProjection(event.Typed(e.Type, e.Tags[0]), false, func(bool, *store.SequencedEvent) bool { return true })
	cond, err := event.Project(ctx, events, enrolled)
	if err != nil {
		return err
	}
	if enrolled.State {
		return fmt.Errorf("%w: %s is enrolled already", bench.ErrMismatch, e.Tags[0])
	}
	_, err = events.Append(ctx, []store.Event{e}, cond)
	return err
}
