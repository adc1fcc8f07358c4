package storetest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/event"
)

// example is one case of an example of the specification: events that happened, a
// command, and what it appends or why it is refused.
type example struct {
	name  string
	given []store.Event
	when  func(evs *store.Events) error
	then  string // the new events, "Type data tag tag, …"
	fails string
}

// runEventExamples runs the examples of https://dcb.events/examples.
func runEventExamples(t *testing.T, h Harness, layout string) {
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
				t.Run(c.name, func(t *testing.T) { c.run(t, h, layout) })
			}
		})
	}
}

func (c example) run(t *testing.T, h Harness, layout string) {
	s := h.events(t, layout)
	if len(c.given) > 0 {
		s.add(t, c.given...)
	}
	err := c.when(s.Events)
	if c.fails != "" {
		require.EqualError(t, err, c.fails)
	} else {
		require.NoError(t, err)
	}
	var got []string
	for _, e := range s.all(t)[len(c.given):] {
		text := e.Type + " " + string(e.Data)
		for _, tag := range e.Tags {
			text += " " + tag.String()
		}
		got = append(got, text)
	}
	require.Equal(t, c.then, strings.Join(got, ", "))
}

// decide projects, lets a rule refuse, and appends under the condition.
func decide(evs *store.Events, rule func() error, e func() store.Event, projectors ...store.Projector) error {
	cond, err := evs.Project(context.Background(), projectors...)
	if err != nil {
		return err
	}
	if err := rule(); err != nil {
		return err
	}
	_, err = evs.Append(context.Background(), []store.Event{e()}, cond)
	return err
}

// seen tells whether an event exists, count how many, and latest its data.
func seen(q store.EventQuery) *event.Projection[bool] {
	return event.NewProjection(q, false, func(bool, *store.SequencedEvent) bool { return true })
}

func count(q store.EventQuery) *event.Projection[int] {
	return event.NewProjection(q, 0, func(n int, _ *store.SequencedEvent) int { return n + 1 })
}

func latest(q store.EventQuery, initial string) *event.Projection[string] {
	return event.NewProjection(q, initial, func(_ string, e *store.SequencedEvent) string { return string(e.Data) })
}

func refuseIf(refused bool, why string) error {
	if refused {
		return errors.New(why)
	}
	return nil
}

// Courses have a capacity; a student may subscribe to three of them.

func subscribe(student, course string) func(evs *store.Events) error {
	return func(evs *store.Events) error {
		s, c := "student:"+student, "course:"+course
		capacity := latest(anyOf(item("CourseDefined|CapacityChanged", c)), "")
		taken := count(anyOf(item("StudentSubscribed", c)))
		courses := count(anyOf(item("StudentSubscribed", s)))
		already := seen(anyOf(item("StudentSubscribed", s, c)))
		rule := func() error {
			seats, err := strconv.Atoi(capacity.State)
			return errors.Join(
				refuseIf(err != nil, "course "+course+" does not exist"),
				refuseIf(err == nil && taken.State >= seats, "course "+course+" is fully booked"),
				refuseIf(already.State, "already subscribed"),
				refuseIf(courses.State >= 3, "at most 3 courses"))
		}
		return decide(evs, rule, func() store.Event { return ev("StudentSubscribed", "", s, c) }, capacity, taken, courses, already)
	}
}

func courseExamples() []example {
	defined := func(course string, capacity int) store.Event {
		return ev("CourseDefined", fmt.Sprint(capacity), "course:"+course)
	}
	sub := func(student, course string) store.Event {
		return ev("StudentSubscribed", "", "student:"+student, "course:"+course)
	}
	define := func(evs *store.Events) error {
		exists := seen(anyOf(item("CourseDefined", "course:c1")))
		rule := func() error { return refuseIf(exists.State, "course c1 exists") }
		return decide(evs, rule, func() store.Event { return defined("c1", 10) }, exists)
	}
	return []example{
		{"define a course", nil, define, "CourseDefined 10 course:c1", ""},
		{"define it twice", []store.Event{defined("c1", 5)}, define, "", "course c1 exists"},
		{"no such course", []store.Event{defined("c0", 5)}, subscribe("s1", "c1"), "", "course c1 does not exist"},
		{"subscribe", []store.Event{defined("c1", 1), sub("s2", "c2")}, subscribe("s1", "c1"), "StudentSubscribed  student:s1 course:c1", ""},
		{"fully booked", []store.Event{defined("c1", 1), sub("s2", "c1")}, subscribe("s1", "c1"), "", "course c1 is fully booked"},
		{"capacity raised", []store.Event{defined("c1", 1), sub("s2", "c1"), ev("CapacityChanged", "2", "course:c1")}, subscribe("s1", "c1"), "StudentSubscribed  student:s1 course:c1", ""},
		{"already subscribed", []store.Event{defined("c1", 5), sub("s1", "c1")}, subscribe("s1", "c1"), "", "already subscribed"},
		{"too many courses", []store.Event{defined("c1", 5), sub("s1", "c2"), sub("s1", "c3"), sub("s1", "c4")}, subscribe("s1", "c1"), "", "at most 3 courses"},
	}
}

// A user name is claimed by one account at a time, and free again some days after
// the account was closed.

func userNameExamples() []example {
	register := func(evs *store.Events) error {
		claimed := event.NewProjection(anyOf(item("Registered|Closed|Renamed", "name:u1")), false,
			func(_ bool, e *store.SequencedEvent) bool {
				return e.Type == "Registered" || e.Type == "Renamed" && string(e.Data) == "u1"
			})
		rule := func() error { return refuseIf(claimed.State, "user name u1 is claimed") }
		return decide(evs, rule, func() store.Event { return ev("Registered", "", "name:u1") }, claimed)
	}
	return []example{
		{"free", nil, register, "Registered  name:u1", ""},
		{"another is claimed", []store.Event{ev("Registered", "", "name:u2")}, register, "Registered  name:u1", ""},
		{"claimed", []store.Event{ev("Registered", "", "name:u1")}, register, "", "user name u1 is claimed"},
		{"closed", []store.Event{ev("Registered", "", "name:u1"), ev("Closed", "", "name:u1")}, register, "Registered  name:u1", ""},
		{"given up", []store.Event{ev("Registered", "", "name:u1"), ev("Renamed", "u2", "name:u1", "name:u2")}, register, "Registered  name:u1", ""},
		{"taken over", []store.Event{ev("Registered", "", "name:u2"), ev("Renamed", "u1", "name:u2", "name:u1")}, register, "", "user name u1 is claimed"},
	}
}

// Invoice numbers have no gaps: the last invoice is all that must be read.

func invoiceExamples() []example {
	create := func(evs *store.Events) error {
		invoices, cond, next := event.Of("InvoiceCreated"), event.Unless(event.Of("InvoiceCreated")), 1
		for e, err := range evs.Read(context.Background(), invoices, &store.EventReadOptions{Backwards: true, Limit: 1}) {
			if err != nil {
				return err
			}
			n, err := strconv.Atoi(string(e.Data))
			if err != nil {
				return err
			}
			cond.After, next = e.Position, n+1
		}
		_, err := evs.Append(context.Background(), []store.Event{ev("InvoiceCreated", strconv.Itoa(next), fmt.Sprintf("invoice:%d", next))}, cond)
		return err
	}
	return []example{
		{"first", []store.Event{ev("Other", "7")}, create, "InvoiceCreated 1 invoice:1", ""},
		{"next", []store.Event{ev("InvoiceCreated", "1"), ev("InvoiceCreated", "2"), ev("Other", "")}, create, "InvoiceCreated 3 invoice:3", ""},
	}
}

// A product is sold at the price that was displayed if that is the current one, or
// was until shortly before.

func priceExamples() []example {
	order := func(displayed int) func(evs *store.Events) error {
		return func(evs *store.Events) error {
			type prices struct{ current, former int }
			grace := time.Now().Add(-time.Hour)
			p := event.NewProjection(anyOf(item("ProductDefined|PriceChanged", "product:p1")), prices{},
				func(p prices, e *store.SequencedEvent) prices {
					n, _ := strconv.Atoi(string(e.Data))
					if e.Time.After(grace) {
						return prices{current: n, former: p.current}
					}
					return prices{current: n}
				})
			rule := func() error {
				return refuseIf(displayed != p.State.current && displayed != p.State.former || displayed == 0, "invalid price")
			}
			return decide(evs, rule, func() store.Event { return ev("ProductOrdered", fmt.Sprint(displayed), "product:p1") }, p)
		}
	}
	defined, changed := ev("ProductDefined", "10", "product:p1"), ev("PriceChanged", "12", "product:p1")
	return []example{
		{"displayed price", []store.Event{defined}, order(10), "ProductOrdered 10 product:p1", ""},
		{"never displayed", []store.Event{defined}, order(9), "", "invalid price"},
		{"changed within the grace period", []store.Event{defined, changed}, order(10), "ProductOrdered 10 product:p1", ""},
		{"new price", []store.Event{defined, changed}, order(12), "ProductOrdered 12 product:p1", ""},
		{"changed twice", []store.Event{defined, changed, ev("PriceChanged", "13", "product:p1")}, order(10), "", "invalid price"},
		{"another product", []store.Event{ev("ProductDefined", "10", "product:p2")}, order(10), "", "invalid price"},
	}
}

// A sign-up is confirmed once, with the one-time password that was sent.

func optInExamples() []example {
	confirm := func(password string) func(evs *store.Events) error {
		return func(evs *store.Events) error {
			pending := seen(anyOf(item("SignUpInitiated", "email:e1", "otp:"+password)))
			used := seen(anyOf(item("SignUpConfirmed", "email:e1", "otp:"+password)))
			rule := func() error {
				return errors.Join(refuseIf(!pending.State, "no pending sign-up"), refuseIf(used.State, "already used"))
			}
			return decide(evs, rule, func() store.Event { return ev("SignUpConfirmed", "", "email:e1", "otp:"+password) }, pending, used)
		}
	}
	initiated := ev("SignUpInitiated", "", "email:e1", "otp:111")
	return []example{
		{"right password", []store.Event{initiated}, confirm("111"), "SignUpConfirmed  email:e1 otp:111", ""},
		{"wrong password", []store.Event{initiated}, confirm("222"), "", "no pending sign-up"},
		{"password of another", []store.Event{initiated, ev("SignUpInitiated", "", "email:e2", "otp:222")}, confirm("222"), "", "no pending sign-up"},
		{"used", []store.Event{initiated, ev("SignUpConfirmed", "", "email:e1", "otp:111")}, confirm("111"), "", "already used"},
	}
}

// A token sent along with a form keeps it from being submitted twice.

func duplicationExamples() []example {
	submit := func(token string) func(evs *store.Events) error {
		return func(evs *store.Events) error {
			used := seen(anyOf(item("OrderPlaced", "token:"+token)))
			rule := func() error { return refuseIf(used.State, "resubmission") }
			return decide(evs, rule, func() store.Event { return ev("OrderPlaced", "", "order:o1", "token:"+token) }, used)
		}
	}
	placed := ev("OrderPlaced", "", "order:o1", "token:11")
	return []example{
		{"new token", []store.Event{placed}, submit("22"), "OrderPlaced  order:o1 token:22", ""},
		{"token used", []store.Event{placed}, submit("11"), "", "resubmission"},
	}
}
