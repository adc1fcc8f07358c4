package bench

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/varvedb/varve/schemas"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/event"
)

// EventData is a log of generated events: courses, students, and enrolments of
// students in courses, in this order. The zero value is an empty store.
type EventData struct {
	Name       string `json:"name"` // in names of benchmarks
	Courses    int    `json:"courses"`
	Students   int    `json:"students"`
	Enrolments int    `json:"enrolments"`
}

// The data sets of go-crablet's benchmarks.
var (
	TinyEvents  = EventData{Name: "tiny", Courses: 5, Students: 10, Enrolments: 17}
	SmallEvents = EventData{Name: "small", Courses: 1_000, Students: 10_000, Enrolments: 50_000}
)

// EventsOf returns a data set of a number of events in the proportions of
// SmallEvents.
func EventsOf(n int) EventData {
	d := EventData{Name: fmt.Sprint(n), Courses: max(n/61, 1), Students: max(n*10/61, 1)}
	d.Enrolments = max(n-d.Courses-d.Students, 0)
	return d
}

// Len returns the number of events.
func (d EventData) Len() int { return d.Courses + d.Students + d.Enrolments }

var (
	eventSubjects = []string{"Computer Science", "Mathematics", "Physics", "Biology", "History"}
	eventGrades   = []string{"A", "B", "C", "D"}
)

// The tags and events of the nth thing of a kind, from 0.

func courseTag(n int) store.Tag  { return event.NewTag("course_id", fmt.Sprintf("course-%d", n)) }
func studentTag(n int) store.Tag { return event.NewTag("student_id", fmt.Sprintf("student-%d", n)) }

func courseEvent(n int) store.Event {
	subject := eventSubjects[n%len(eventSubjects)]
	return store.Event{Type: "CourseDefined", Tags: []store.Tag{courseTag(n), event.NewTag("category", subject)},
		Data: fmt.Appendf(nil, `{"courseId":"course-%d","category":%q,"capacity":%d}`, n, subject, 50+n%50)}
}

func studentEvent(n int) store.Event {
	subject := eventSubjects[n*7%len(eventSubjects)]
	return store.Event{Type: "StudentRegistered", Tags: []store.Tag{studentTag(n), event.NewTag("major", subject)},
		Data: fmt.Appendf(nil, `{"studentId":"student-%d","major":%q,"name":"Student %d"}`, n, subject, n)}
}

// enrolmentEvent takes each student to courses in turn, another one each time.
func (d EventData) enrolmentEvent(n int) store.Event {
	student := n % d.Students
	course := (student*13 + n/d.Students*7) % d.Courses
	grade := eventGrades[n%len(eventGrades)]
	return store.Event{Type: "StudentEnrolledInCourse",
		Tags: []store.Tag{studentTag(student), courseTag(course), event.NewTag("grade", grade)},
		Data: fmt.Appendf(nil, `{"studentId":"student-%d","courseId":"course-%d","grade":%q}`, student, course, grade)}
}

// Events yields the events.
func (d EventData) Events() iter.Seq[store.Event] {
	return func(yield func(store.Event) bool) {
		for n := range d.Courses {
			if !yield(courseEvent(n)) {
				return
			}
		}
		for n := range d.Students {
			if !yield(studentEvent(n)) {
				return
			}
		}
		for n := range d.Enrolments {
			if !yield(d.enrolmentEvent(n)) {
				return
			}
		}
	}
}

// Count returns how many events a query selects.
func (d EventData) Count(q store.EventQuery) (n int) {
	for e := range d.Events() {
		if q.Matches(&e) {
			n++
		}
	}
	return n
}

// EventDataset is a store of generated events.
type EventDataset struct {
	Engine Engine    `json:"engine"`
	Layout string    `json:"layout"`
	Data   EventData `json:"data"`
}

// eventFormat is part of every key. Raise it when events are generated or stored
// otherwise from the same parameters.
const eventFormat = 2

// Key returns the name of the data set in a cache.
func (d EventDataset) Key() (string, error) {
	linked, err := d.Engine.driver()
	if err != nil {
		return "", err
	}
	schema, err := schemas.EventTables(d.Layout, string(linked.Info.Dialect))
	if err != nil {
		return "", err
	}
	return hashParts("events", eventFormat, d, linked.Info, schema.Tables, schema.Indexes)
}

// build makes the store in a directory.
func (d EventDataset) build(ctx context.Context, dir string) (r Ready, err error) {
	start := time.Now()
	db, err := store.Open(ctx, d.Engine.URL(dir), nil)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	evs, err := db.Events(ctx, store.EventOptions{Layout: d.Layout})
	if err != nil {
		return r, err
	}
	batch := make([]store.Event, 0, 5000)
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		_, err := evs.Append(ctx, batch, nil)
		batch = batch[:0]
		return err
	}
	for e := range d.Data.Events() {
		if batch = append(batch, e); len(batch) == cap(batch) {
			if err := flush(); err != nil {
				return r, err
			}
		}
	}
	if err := flush(); err != nil {
		return r, err
	}
	if r.Head, err = evs.Head(ctx); err != nil {
		return r, err
	}
	if int(r.Head) != d.Data.Len() {
		return r, mismatch("head %d after %d events", r.Head, d.Data.Len())
	}
	if err := FoldLog(ctx, db); err != nil {
		return r, err
	}
	info := db.Engine().Info()
	r.Spec, r.Engine, r.Seconds = d, info.Name+" "+info.Version, time.Since(start).Seconds()
	return r, nil
}

// EventCopy is an open copy of a data set of events that a run may change.
type EventCopy struct {
	copied
	Events *store.Events
	Data   EventData
}

// OpenEvents copies a data set of events and opens the copy. A data set that
// turns out to be damaged is built again, once.
func (c *Cache) OpenEvents(ctx context.Context, d EventDataset, opts *store.Options) (*EventCopy, error) {
	key, err := d.Key()
	if err != nil {
		return nil, fmt.Errorf("data set: %w", err)
	}
	cp := &EventCopy{copied: copied{engine: d.Engine, opts: opts}, Data: d.Data}
	cp.attach = func(ctx context.Context) (err error) {
		cp.Events, err = cp.DB.Events(ctx, store.EventOptions{Layout: d.Layout})
		return err
	}
	if err := c.open(ctx, &cp.copied, key, d.build); err != nil {
		return nil, err
	}
	return cp, nil
}
