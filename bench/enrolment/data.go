// Package enrolment measures the event store with the workload of go-crablet's
// benchmarks: courses, students, and enrolments of students in courses.
// Workloads lists the measurements, for benchmarks of go test and for the
// catalogue of experiments.
package enrolment

import (
	"fmt"
	"iter"
	"strconv"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/store/event"
)

// Data is a log of generated events: courses, students, and enrolments of
// students in courses, in this order. The zero value is an empty store.
type Data struct {
	Name       string `json:"name"` // in names of benchmarks
	Courses    int    `json:"courses"`
	Students   int    `json:"students"`
	Enrolments int    `json:"enrolments"`
}

// The data sets of go-crablet's benchmarks.
var (
	Tiny  = Data{Name: "tiny", Courses: 5, Students: 10, Enrolments: 17}
	Small = Data{Name: "small", Courses: 1_000, Students: 10_000, Enrolments: 50_000}
)

// Many returns a data set of n events, at least 100, in the proportions of
// Small.
func Many(n int) Data {
	d := Data{Name: strconv.Itoa(n), Courses: n / 61, Students: n * 10 / 61}
	d.Enrolments = n - d.Courses - d.Students
	return d
}

// Len returns the number of events.
func (d Data) Len() int { return d.Courses + d.Students + d.Enrolments }

// enrolled is the type of enrolments.
const enrolled = "StudentEnrolledInCourse"

var (
	subjects = []string{"Computer Science", "Mathematics", "Physics", "Biology", "History"}
	grades   = []string{"A", "B", "C", "D"}
)

// The tags and events of the nth course, student or enrolment, counted from 0.

func courseTag(n int) event.Tag  { return event.NewTag("course_id", fmt.Sprintf("course-%d", n)) }
func studentTag(n int) event.Tag { return event.NewTag("student_id", fmt.Sprintf("student-%d", n)) }

func courseEvent(n int) event.Event {
	subject := subjects[n%len(subjects)]
	return event.Event{Type: "CourseDefined", Tags: []event.Tag{courseTag(n), event.NewTag("category", subject)},
		Data: fmt.Appendf(nil, `{"courseId":"course-%d","category":%q,"capacity":%d}`, n, subject, 50+n%50)}
}

func studentEvent(n int) event.Event {
	subject := subjects[n*7%len(subjects)]
	return event.Event{Type: "StudentRegistered", Tags: []event.Tag{studentTag(n), event.NewTag("major", subject)},
		Data: fmt.Appendf(nil, `{"studentId":"student-%d","major":%q,"name":"Student %d"}`, n, subject, n)}
}

// enrolmentEvent enrols the students in turn, each time in another course.
func (d Data) enrolmentEvent(n int) event.Event {
	student := n % d.Students
	course := (student*13 + n/d.Students*7) % d.Courses
	grade := grades[n%len(grades)]
	return event.Event{Type: enrolled,
		Tags: []event.Tag{studentTag(student), courseTag(course), event.NewTag("grade", grade)},
		Data: fmt.Appendf(nil, `{"studentId":"student-%d","courseId":"course-%d","grade":%q}`, student, course, grade)}
}

// event returns the nth event of the log.
func (d Data) event(n int) event.Event {
	if n < d.Courses {
		return courseEvent(n)
	}
	if n -= d.Courses; n < d.Students {
		return studentEvent(n)
	}
	return d.enrolmentEvent(n - d.Students)
}

// Events yields the events.
func (d Data) Events() iter.Seq[event.Event] {
	return func(yield func(event.Event) bool) {
		for n := range d.Len() {
			if !yield(d.event(n)) {
				return
			}
		}
	}
}

// Layout is the name of the event tables in results.
const Layout = "tags"

// Dataset returns a data set of these events.
func (d Data) Dataset(e bench.Engine) bench.Dataset {
	return bench.Dataset{Engine: e, Layout: Layout, Source: &bench.Source{
		Name: fmt.Sprintf("events courses=%d students=%d enrolments=%d", d.Courses, d.Students, d.Enrolments), Events: d.Events,
	}}
}

// Count returns how many events a query selects.
func (d Data) Count(q event.Query) (n int) {
	for e := range d.Events() {
		if q.Matches(&e) {
			n++
		}
	}
	return n
}
