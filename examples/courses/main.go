// Courses shows a decision over events of two kinds of thing: students subscribe
// to courses, a course has a capacity, and a student may take three courses. Many
// try at once; the append condition keeps both rules without a lock.
//
//	go run . sqlite:courses.db
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/event"

	_ "github.com/varvedb/varve/store/sqlite" // links the engine behind sqlite: URLs
)

// maxCourses is how many courses a student may take.
const maxCourses = 3

// The reasons for refusing a subscription.
var (
	errNoCourse   = errors.New("no such course")
	errFull       = errors.New("the course is fully booked")
	errSubscribed = errors.New("subscribed already")
	errBusy       = errors.New("the student takes three courses")
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: courses URL")
		os.Exit(2)
	}
	if err := run(context.Background(), os.Stdout, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "courses:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, url string) (err error) {
	db, err := store.Open(ctx, url, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	events, err := db.Events(ctx, nil)
	if err != nil {
		return err
	}
	for _, c := range []string{"maths", "physics"} {
		if err := define(ctx, events, c, 5); err != nil {
			return err
		}
	}
	accepted, err := rush(ctx, events, "maths", 20)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "20 students asked for maths, %d are in\n", accepted)
	fmt.Fprintln(out, "one more:", subscribe(ctx, events, "late", "maths"))
	fmt.Fprintln(out, "unknown course:", subscribe(ctx, events, "late", "latin"))
	n := 0
	for _, err := range events.Read(ctx, event.Typed("StudentSubscribed", course("maths")), nil) {
		if err != nil {
			return err
		}
		n++
	}
	fmt.Fprintf(out, "subscriptions to maths: %d\n", n)
	return nil
}

func course(name string) event.Tag  { return event.NewTag("course", name) }
func student(name string) event.Tag { return event.NewTag("student", name) }

// define adds a course unless it exists.
func define(ctx context.Context, events event.Store, name string, capacity int) error {
	e := event.Event{Type: "CourseDefined", Tags: []event.Tag{course(name)}, Data: []byte(strconv.Itoa(capacity))}
	_, err := events.Append(ctx, []event.Event{e}, event.Unless(event.Typed(e.Type, course(name))))
	if errors.Is(err, store.ErrConflict) {
		return nil
	}
	return err
}

// rush lets students subscribe concurrently and counts the accepted ones.
func rush(ctx context.Context, events event.Store, name string, students int) (accepted int, err error) {
	errs := make([]error, students)
	var wg sync.WaitGroup
	for i := range students {
		wg.Go(func() { errs[i] = subscribe(ctx, events, fmt.Sprintf("s%d", i), name) })
	}
	wg.Wait()
	for _, e := range errs {
		switch {
		case e == nil:
			accepted++
		case !errors.Is(e, errFull) && !errors.Is(e, errSubscribed):
			err = errors.Join(err, e)
		}
	}
	return accepted, err
}

// subscribe reads the state that the rules need, in one pass, and appends under
// the condition that it still holds. If it does not, subscribe decides again.
func subscribe(ctx context.Context, events event.Store, who, what string) error {
	s, c := student(who), course(what)
	count := func(n int, _ *event.Sequenced) int { return n + 1 }
	capacity := event.TryProjection(event.Typed("CourseDefined", c), 0,
		func(_ int, e *event.Sequenced) (int, error) { return strconv.Atoi(string(e.Data)) })
	taken := event.NewProjection(event.Typed("StudentSubscribed", c), 0, count)
	courses := event.NewProjection(event.Typed("StudentSubscribed", s), 0, count)
	both := event.NewProjection(event.Typed("StudentSubscribed", s, c), 0, count)
	choose := func() ([]event.Event, error) {
		switch {
		case capacity.State == 0:
			return nil, errNoCourse
		case both.State > 0:
			return nil, errSubscribed
		case taken.State >= capacity.State:
			return nil, errFull
		case courses.State >= maxCourses:
			return nil, errBusy
		}
		return []event.Event{{Type: "StudentSubscribed", Tags: []event.Tag{s, c}}}, nil
	}
	_, err := event.Decide(ctx, events, event.Decision{Reads: []event.Projector{capacity, taken, courses, both}, Choose: choose})
	return err
}
