package storetest

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/event"
)

// example is a case of an example of the specification: given events, a
// command, and the events that it appends or the error.
type example struct {
	name  string
	given []event.Event
	when  command
	then  string // the new events, "Type data tag tag, …"
	fails string
}

// command is a request of a user.
type command func(evs event.Store) error

// runEventExamples runs the cases that https://dcb.events/examples publishes,
// and a few more, all in one store. Each case has other event types.
func runEventExamples(t *testing.T, h Harness) {
	s := h.events(t)
	sets := map[string][]example{
		"course subscriptions": courseExamples(),
		"unique user name":     userNameExamples(),
		"invoice number":       invoiceExamples(),
		"product price":        priceExamples(),
		"opt-in token":         optInExamples(),
		"record duplication":   duplicationExamples(),
	}
	for name, cases := range sets {
		t.Run(name, func(t *testing.T) {
			for _, c := range cases {
				t.Run(c.name, func(t *testing.T) { c.run(t, &realm{Store: s, prefix: name + "/" + c.name + "/"}) })
			}
		})
	}
}

// realm is the part of a store with the event types that begin with its prefix.
type realm struct {
	event.Store
	prefix string
}

func (w *realm) Append(ctx context.Context, events []event.Event, cond *event.Condition) ([]uint64, error) {
	events = slices.Clone(events)
	for i := range events {
		events[i].Type = w.prefix + events[i].Type
	}
	if cond != nil {
		cond = &event.Condition{FailIfEventsMatch: w.query(cond.FailIfEventsMatch), After: cond.After}
	}
	return w.Store.Append(ctx, events, cond)
}

func (w *realm) query(q event.Query) event.Query {
	items := slices.Clone(q.Items)
	for i := range items {
		items[i].Types = slices.Clone(items[i].Types)
		for j := range items[i].Types {
			items[i].Types[j] = w.prefix + items[i].Types[j]
		}
	}
	return event.Query{Items: items}
}

func (w *realm) Read(ctx context.Context, q event.Query, opts *event.ReadOptions) iter.Seq2[event.Sequenced, error] {
	return func(yield func(event.Sequenced, error) bool) {
		for e, err := range w.Store.Read(ctx, w.query(q), opts) {
			own := strings.HasPrefix(e.Type, w.prefix)
			e.Type = strings.TrimPrefix(e.Type, w.prefix)
			if (own || err != nil) && !yield(e, err) {
				return
			}
		}
	}
}

func (c example) run(t *testing.T, s event.Store) {
	from := uint64(0)
	if len(c.given) > 0 {
		positions, err := s.Append(t.Context(), c.given, nil)
		require.NoError(t, err)
		from = positions[len(positions)-1] + 1
	}
	err := c.when(s)
	if c.fails != "" {
		require.EqualError(t, err, c.fails)
	} else {
		require.NoError(t, err)
	}
	added := collect(t, s.Read(t.Context(), event.All(), &event.ReadOptions{From: from}))
	var got []string
	for _, e := range added {
		text := e.Type + " " + string(e.Data)
		for _, tag := range e.Tags {
			text += " " + tag.String()
		}
		got = append(got, text)
	}
	require.Equal(t, c.then, strings.Join(got, ", "))
}

// decide reads, lets a rule refuse, and appends one event.
func decide(evs event.Store, rule func() error, e func() event.Event, reads ...event.Projector) error {
	_, err := event.Decide(context.Background(), evs, event.Decision{Reads: reads, Choose: func() ([]event.Event, error) {
		if err := rule(); err != nil {
			return nil, err
		}
		return []event.Event{e()}, nil
	}})
	return err
}

// seen reports whether an event exists, count returns the number of events, and
// latest the data of the last one.
func seen(q event.Query) *event.Projection[bool] {
	return event.NewProjection(q, false, func(bool, *event.Sequenced) bool { return true })
}

func count(q event.Query) *event.Projection[int] {
	return event.NewProjection(q, 0, func(n int, _ *event.Sequenced) int { return n + 1 })
}

func latest(q event.Query) *event.Projection[int] {
	return event.TryProjection(q, 0, func(_ int, e *event.Sequenced) (int, error) { return strconv.Atoi(string(e.Data)) })
}

func refuseIf(refused bool, format string, args ...any) error {
	if refused {
		return fmt.Errorf(format, args...)
	}
	return nil
}

// ago returns an event with its age as metadata. The published cases, too, have
// days and minutes as metadata in place of a clock.
func ago(n int, e event.Event) event.Event {
	e.Metadata = []byte(strconv.Itoa(n))
	return e
}

// within reports whether an event is at most n old. An event without an age is
// not.
func within(n int, e *event.Sequenced) bool {
	past, err := strconv.Atoi(string(e.Metadata))
	return err == nil && past <= n
}

// Courses have a capacity that may change; a student may subscribe to five of
// them.

func courseDefined(course string, capacity int) event.Event {
	return ev("CourseDefined", strconv.Itoa(capacity), "course:"+course)
}

func capacityChanged(course string, capacity int) event.Event {
	return ev("CourseCapacityChanged", strconv.Itoa(capacity), "course:"+course)
}

// subscribed returns the events of a student's subscriptions.
func subscribed(student string, courses ...string) (list []event.Event) {
	for _, c := range courses {
		list = append(list, ev("StudentSubscribed", "", "student:"+student, "course:"+c))
	}
	return list
}

func courseExists(course string) *event.Projection[bool] {
	return seen(anyOf(item("CourseDefined", "course:"+course)))
}

func courseCapacity(course string) *event.Projection[int] {
	return latest(anyOf(item("CourseDefined|CourseCapacityChanged", "course:"+course)))
}

func define(course string, capacity int) command {
	return func(evs event.Store) error {
		exists := courseExists(course)
		rule := func() error { return refuseIf(exists.State, "course %s exists", course) }
		return decide(evs, rule, func() event.Event { return courseDefined(course, capacity) }, exists)
	}
}

func changeCapacity(course string, to int) command {
	return func(evs event.Store) error {
		exists, capacity := courseExists(course), courseCapacity(course)
		rule := func() error {
			return cmp.Or(
				refuseIf(!exists.State, "no course %s", course),
				refuseIf(capacity.State == to, "the capacity is %d already", to))
		}
		return decide(evs, rule, func() event.Event { return capacityChanged(course, to) }, exists, capacity)
	}
}

func subscribe(student, course string) command {
	return func(evs event.Store) error {
		s, c := "student:"+student, "course:"+course
		exists, capacity := courseExists(course), courseCapacity(course)
		taken := count(anyOf(item("StudentSubscribed", c)))
		courses := count(anyOf(item("StudentSubscribed", s)))
		already := seen(anyOf(item("StudentSubscribed", s, c)))
		rule := func() error {
			return cmp.Or(
				refuseIf(!exists.State, "no course %s", course),
				refuseIf(taken.State >= capacity.State, "course %s is fully booked", course),
				refuseIf(already.State, "subscribed already"),
				refuseIf(courses.State >= 5, "at most 5 courses"))
		}
		return decide(evs, rule, func() event.Event { return subscribed(student, course)[0] }, exists, capacity, taken, courses, already)
	}
}

func courseExamples() []example {
	with := func(first event.Event, more ...event.Event) []event.Event {
		return append([]event.Event{first}, more...)
	}
	full := with(courseDefined("c1", 3), ev("StudentSubscribed", "", "student:s1", "course:c1"),
		ev("StudentSubscribed", "", "student:s2", "course:c1"), ev("StudentSubscribed", "", "student:s3", "course:c1"))
	const s1c1, s4c1 = "StudentSubscribed  student:s1 course:c1", "StudentSubscribed  student:s4 course:c1"
	return []example{
		{"define, exists", with(courseDefined("c1", 10)), define("c1", 15), "", "course c1 exists"},
		{"define", nil, define("c1", 15), "CourseDefined 15 course:c1", ""},
		{"change capacity, no course", nil, changeCapacity("c0", 15), "", "no course c0"},
		{"change capacity", with(courseDefined("c1", 12)), changeCapacity("c1", 15), "CourseCapacityChanged 15 course:c1", ""},
		{"subscribe, no course", nil, subscribe("s1", "c0"), "", "no course c0"},
		{"subscribe, full", full, subscribe("s4", "c1"), "", "course c1 is fully booked"},
		{"subscribe twice", with(courseDefined("c1", 10), subscribed("s1", "c1")...), subscribe("s1", "c1"), "", "subscribed already"},
		{"subscribe, too many", with(courseDefined("c6", 10), subscribed("s1", "c1", "c2", "c3", "c4", "c5")...), subscribe("s1", "c6"), "", "at most 5 courses"},
		{"subscribe", with(courseDefined("c1", 10)), subscribe("s1", "c1"), s1c1, ""},

		// Not published.
		{"change capacity, the same", with(courseDefined("c1", 12), capacityChanged("c1", 15)), changeCapacity("c1", 15), "", "the capacity is 15 already"},
		{"subscribe, capacity raised", append(full, capacityChanged("c1", 4)), subscribe("s4", "c1"), s4c1, ""},
		{"subscribe, others elsewhere", with(courseDefined("c1", 1), subscribed("s2", "c2")...), subscribe("s1", "c1"), s1c1, ""},
	}
}

// A user name is claimed by one account at a time, and free again some days
// after the account was closed or renamed.

func register(name string, days int) command {
	return func(evs event.Store) error {
		claimed := event.NewProjection(anyOf(item("Registered|Closed|Renamed", "name:"+name)), false,
			func(_ bool, e *event.Sequenced) bool {
				kept := e.Type == "Registered" || e.Type == "Renamed" && string(e.Data) == name
				return kept || within(days, e)
			})
		rule := func() error { return refuseIf(claimed.State, "%s is claimed", name) }
		return decide(evs, rule, func() event.Event { return ev("Registered", "", "name:"+name) }, claimed)
	}
}

func userNameExamples() []example {
	u1, closed, renamed := ev("Registered", "", "name:u1"), ev("Closed", "", "name:u1"), ev("Renamed", "u2", "name:u1", "name:u2")
	const ok, taken, never = "Registered  name:u1", "u1 is claimed", 0
	return []example{
		{"claimed", []event.Event{u1}, register("u1", never), "", taken},
		{"free", nil, register("u1", never), ok, ""},
		{"closed", []event.Event{u1, closed}, register("u1", never), ok, ""},
		{"renamed", []event.Event{u1, renamed}, register("u1", never), ok, ""},
		{"renamed to", []event.Event{u1, renamed}, register("u2", never), "", "u2 is claimed"},
		{"closed within the days", []event.Event{ago(4, u1), ago(3, closed)}, register("u1", 3), "", taken},
		{"renamed within the days", []event.Event{ago(4, u1), ago(3, renamed)}, register("u1", 3), "", taken},
		{"closed before", []event.Event{ago(4, u1), ago(4, closed)}, register("u1", 3), ok, ""},
		{"renamed before", []event.Event{ago(4, u1), ago(4, renamed)}, register("u1", 3), ok, ""},

		// Not published.
		{"another is claimed", []event.Event{ev("Registered", "", "name:u2")}, register("u1", never), ok, ""},
	}
}

// Invoice numbers have no gaps. By a projection, or by the last invoice, which
// is all that must be read.

func invoiceByProjection(evs event.Store) error {
	last := latest(event.Of("InvoiceCreated"))
	none := func() error { return nil }
	return decide(evs, none, func() event.Event { return invoice(last.State + 1) }, last)
}

func invoiceByLast(evs event.Store) error {
	cond, next := event.Unless(event.Of("InvoiceCreated")), 1
	for e, err := range evs.Read(context.Background(), cond.FailIfEventsMatch, &event.ReadOptions{Backwards: true, Limit: 1}) {
		if err != nil {
			return err
		}
		n, err := strconv.Atoi(string(e.Data))
		if err != nil {
			return err
		}
		cond.After, next = e.Position, n+1
	}
	_, err := evs.Append(context.Background(), []event.Event{invoice(next)}, cond)
	return err
}

func invoice(n int) event.Event {
	return ev("InvoiceCreated", strconv.Itoa(n), fmt.Sprintf("invoice:%d", n))
}

func invoiceExamples() []example {
	return []example{
		{"first", nil, invoiceByProjection, "InvoiceCreated 1 invoice:1", ""},
		{"second", []event.Event{invoice(1)}, invoiceByProjection, "InvoiceCreated 2 invoice:2", ""},

		// Not published.
		{"first, by the last", []event.Event{ev("Other", "7")}, invoiceByLast, "InvoiceCreated 1 invoice:1", ""},
		{"next, by the last", []event.Event{invoice(1), invoice(2), ev("Other", "")}, invoiceByLast, "InvoiceCreated 3 invoice:3", ""},
	}
}

// A sign-up is confirmed once and within the hour, with the one-time password
// that was sent.

func confirm(email, password string) command {
	return func(evs event.Store) error {
		type signUp struct {
			name                   string
			pending, used, expired bool
		}
		p := event.NewProjection(anyOf(item("SignUpInitiated|SignUpConfirmed", "email:"+email, "otp:"+password)), signUp{},
			func(s signUp, e *event.Sequenced) signUp {
				if e.Type == "SignUpConfirmed" {
					s.used = true
					return s
				}
				return signUp{name: string(e.Data), pending: true, expired: e.Metadata != nil && !within(60, e)}
			})
		rule := func() error {
			return cmp.Or(
				refuseIf(!p.State.pending, "no pending sign-up"),
				refuseIf(p.State.used, "used already"),
				refuseIf(p.State.expired, "expired"))
		}
		return decide(evs, rule, func() event.Event { return ev("SignUpConfirmed", p.State.name, "email:"+email, "otp:"+password) }, p)
	}
}

func optInExamples() []example {
	signUp := func(typ, otp string) event.Event { return ev(typ, "John", "email:john", "otp:"+otp) }
	initiated := signUp("SignUpInitiated", "222222")
	return []example{
		{"unknown password", nil, confirm("john", "000000"), "", "no pending sign-up"},
		{"password of another", []event.Event{initiated}, confirm("jane", "222222"), "", "no pending sign-up"},
		{"used", []event.Event{initiated, signUp("SignUpConfirmed", "222222")}, confirm("john", "222222"), "", "used already"},
		{"valid", []event.Event{initiated}, confirm("john", "222222"), "SignUpConfirmed John email:john otp:222222", ""},
		{"another is expired", []event.Event{ago(61, initiated)}, confirm("john", "000000"), "", "no pending sign-up"},

		// Not published.
		{"expired", []event.Event{ago(61, initiated)}, confirm("john", "222222"), "", "expired"},
		{"in time", []event.Event{ago(60, initiated)}, confirm("john", "222222"), "SignUpConfirmed John email:john otp:222222", ""},
	}
}

// A token sent along with a form keeps it from being submitted twice.

func place(order, token string) command {
	return func(evs event.Store) error {
		used := seen(anyOf(item("OrderPlaced", "token:"+token)))
		rule := func() error { return refuseIf(used.State, "submitted before") }
		return decide(evs, rule, func() event.Event { return ev("OrderPlaced", "", "order:"+order, "token:"+token) }, used)
	}
}

func duplicationExamples() []example {
	placed := []event.Event{ev("OrderPlaced", "", "order:o1", "token:11111")}
	return []example{
		{"token used", placed, place("o2", "11111"), "", "submitted before"},
		{"new token", placed, place("o2", "22222"), "OrderPlaced  order:o2 token:22222", ""},
	}
}
