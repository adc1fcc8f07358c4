package main

import (
	"bytes"
	"context"
	"path/filepath"
	"testing"
)

// TestRun runs the program: five of twenty students get in, and no student
// after them.
func TestRun(t *testing.T) {
	want := `20 students asked for maths, 5 are in
one more: the course is fully booked
unknown course: no such course
subscriptions to maths: 5
`
	var out bytes.Buffer
	if err := run(context.Background(), &out, "sqlite:"+filepath.Join(t.TempDir(), "courses.db")); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
