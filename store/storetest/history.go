package storetest

import (
	"bytes"
	"embed"
	"fmt"
	"maps"
	"os"
	"path"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
	"github.com/varvedb/varve/store/storetest/model"
)

// step is one line of a history: a call with all its arguments. A step draws
// nothing, so that a history can be repeated. Any part of a history is a
// history too: if a missing step makes a call invalid, the model knows that.
type step struct {
	Do string // a name in verbs

	At     uint64 // the block of a read, rewind or prune; the first of changes
	To     uint64 // the last block of changes
	Blocks []entity.Block

	Layout     string            // of open and copy; empty: the store's record says it
	ExtendAdds bool              // store.EntityOptions.ExtendAdds, of the first open
	Params     map[string]string // of the URL, in addition to earlier ones

	Held    int    // load and refuse: this many blocks at the end of the store's come first
	Cut     int    // refuse: this many blocks of the store follow after the other block
	Changes int    // store.LoadOptions.Changes
	End     string // load: "broken" or "cancelled"; empty: the stream ends well
	Given   int    // load: the call is cancelled after this many blocks

	Keys      []entity.Key
	Questions []model.Question

	Truncate bool   // of a checkpoint
	Way      string // of a copy: "history" or "backup"
}

// written are the options with which a step becomes text and a text a step:
// fields that are zero are left out, values are written as their String does.
var written = json.JoinOptions(
	json.Deterministic(true), json.OmitZeroStructFields(true), json.RejectUnknownMembers(true), jsontext.SpaceAfterComma(true),
	json.WithMarshalers(json.JoinMarshalers(
		named[entity.Kind](), named[entity.Key](), named[entity.Address](), named[query.Expr](),
	)),
	json.WithUnmarshalers(json.JoinUnmarshalers(
		parsed(parseKind), parsed(entity.ParseKey), parsed(entity.ParseAddress), parsed(query.Parse),
	)),
)

func named[T fmt.Stringer]() *json.Marshalers {
	return json.MarshalFunc(func(v T) ([]byte, error) { return jsontext.AppendQuote(nil, v.String()) })
}

func parsed[T any](parse func(string) (T, error)) *json.Unmarshalers {
	return json.UnmarshalFunc(func(text []byte, to *T) error {
		var s string
		err := json.Unmarshal(text, &s)
		if err == nil {
			*to, err = parse(s)
		}
		return err
	})
}

func parseKind(name string) (entity.Kind, error) {
	for kind := entity.Create; kind <= entity.Expire; kind++ {
		if kind.String() == name {
			return kind, nil
		}
	}
	return 0, fmt.Errorf("unknown kind of operation %q", name)
}

// formatHistory returns a history as text, one step a line.
func formatHistory(history []step) string {
	var text bytes.Buffer
	for i := range history {
		line, err := json.Marshal(&history[i], written)
		fmt.Fprintf(&text, "%s\n", line)
		if err != nil { // a call may be given text that JSON cannot hold
			fmt.Fprintf(&text, "# %+v: %v\n", history[i], err)
		}
	}
	return text.String()
}

// parseHistory is the inverse of formatHistory. Lines that begin with # are
// comments.
func parseHistory(t testing.TB, text string) (history []step) {
	t.Helper()
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		var s step
		require.NoError(t, json.Unmarshal([]byte(line), &s, written), line)
		history = append(history, s)
	}
	return history
}

//go:embed testdata/*.jsonl
var keptHistories embed.FS

// runKept replays the histories in testdata, which failed once, on each layout.
// To keep another one, add the text that runDifferential prints.
func runKept(t *testing.T, h Harness) {
	for _, file := range must(keptHistories.ReadDir("testdata"))(t) {
		text := must(keptHistories.ReadFile("testdata/" + file.Name()))(t)
		history := parseHistory(t, string(text))
		for _, h.layout = range h.layouts() {
			t.Run(strings.TrimSuffix(file.Name(), path.Ext(file.Name()))+"/"+h.layout, func(t *testing.T) {
				replay(t, h, history, false)
			})
		}
	}
}

// replay runs a history on a new store of a layout.
func replay(t testing.TB, h Harness, history []step, many bool) {
	m := newMachine(t, h, many)
	defer m.close()
	for _, s := range history {
		m.do(s)
	}
	m.checkState()
}

// trial is a test within a test: it may fail and the test around it goes on.
type trial struct {
	testing.TB
	failure  string
	cleanups []func()
}

// Errorf implements testing.TB.
func (t *trial) Errorf(format string, args ...any) { t.failure += fmt.Sprintf(format, args...) }

// FailNow implements testing.TB.
func (t *trial) FailNow() { runtime.Goexit() }

// Cleanup implements testing.TB.
func (t *trial) Cleanup(f func()) { t.cleanups = append(t.cleanups, f) }

// TempDir implements testing.TB.
func (t *trial) TempDir() string {
	dir, err := os.MkdirTemp("", "trial")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

// end calls the cleanups, also after a panic.
func (t *trial) end() {
	if p := recover(); p != nil {
		t.Errorf("panic: %v\n%s", p, debug.Stack())
	}
	for _, f := range t.cleanups {
		defer f()
	}
}

// try runs f as a trial and returns how it failed, or nothing.
func try(t testing.TB, f func(t testing.TB)) (failure string) {
	inner, done := &trial{TB: t}, make(chan struct{})
	go func() {
		defer close(done)
		defer inner.end()
		f(inner)
	}()
	<-done
	return inner.failure
}

// reduceTime limits how long a failing history is reduced. Small histories take
// a few seconds.
const reduceTime = 2 * time.Minute

// fail reports a history that failed, reduced, as text that testdata can keep.
func (h Harness) fail(t testing.TB, history []step, many bool, failure string) {
	t.Helper()
	var last string
	deadline := time.Now().Add(reduceTime)
	fails := func(history []step) bool {
		if time.Now().After(deadline) {
			return false
		}
		found := try(t, func(t testing.TB) { replay(t, h, history, many) })
		if found != "" {
			last = found
		}
		return found != ""
	}
	if !fails(history) {
		t.Fatalf("%s\nThe history does not fail when it is replayed, so it is not reduced:\n%s", failure, formatHistory(history))
	}
	reduced := reduce(history, fails)
	t.Fatalf("%s\nThe failure of the reduced history:\n%s\nTo replay it, keep these %d of %d steps in store/storetest/testdata/NAME.jsonl:\n%s",
		failure, last, len(reduced), len(history), formatHistory(reduced))
}

// reduce leaves out steps of a failing history, and parts of steps, as long as
// it still fails. The first step opens the store and stays.
func reduce(history []step, fails func([]step) bool) []step {
	for before := ""; before != formatHistory(history); {
		before = formatHistory(history)
		rest := shorten(history[1:], func(rest []step) bool { return fails(append(history[:1:1], rest...)) })
		history = append(history[:1:1], rest...)
		for i := range history {
			failsWith := func(s step) bool {
				other := slices.Clone(history)
				other[i] = s
				return fails(other)
			}
			history[i] = history[i].reduce(failsWith)
		}
	}
	return history
}

// shorten leaves out elements of a list as long as it fails without them: half
// of the list first, single elements in the end.
func shorten[T any](list []T, fails func([]T) bool) []T {
	for n := len(list); n > 0; n /= 2 {
		for at := 0; at < len(list); {
			shorter := slices.Delete(slices.Clone(list), at, min(at+n, len(list)))
			if fails(shorter) {
				list = shorter
			} else {
				at += n
			}
		}
	}
	return list
}

// reduce leaves out parts of a step.
func (s step) reduce(fails func(step) bool) step {
	// attempt makes a change of a copy of the step and keeps it if that fails.
	attempt := func(change func(s *step)) bool {
		other := s
		other.Blocks, other.Questions = slices.Clone(s.Blocks), slices.Clone(s.Questions)
		for i := range other.Blocks {
			other.Blocks[i].Ops = slices.Clone(s.Blocks[i].Ops)
		}
		change(&other)
		failed := !reflect.DeepEqual(s, other) && fails(other)
		if failed {
			s = other
		}
		return failed
	}
	shorten(s.Blocks, func(list []entity.Block) bool { return attempt(func(s *step) { s.Blocks = list }) })
	shorten(s.Keys, func(list []entity.Key) bool { return attempt(func(s *step) { s.Keys = list }) })
	shorten(s.Questions, func(list []model.Question) bool { return attempt(func(s *step) { s.Questions = list }) })
	for name := range s.Params {
		attempt(func(s *step) {
			s.Params = maps.Clone(s.Params)
			delete(s.Params, name)
		})
	}
	if s.Held > 0 {
		attempt(func(s *step) { s.Held = 0 })
	}
	for i := range s.Blocks {
		attempt(func(s *step) { s.Blocks[i].Hash, s.Blocks[i].Time = entity.Hash{}, 0 })
		shorten(s.Blocks[i].Ops, func(list []entity.Op) bool { return attempt(func(s *step) { s.Blocks[i].Ops = list }) })
		for j := range s.Blocks[i].Ops {
			for _, change := range []func(op *entity.Op){
				func(op *entity.Op) { op.ContentType, op.Content = "", nil },
				func(op *entity.Op) { op.StringAttributes = nil },
				func(op *entity.Op) { op.NumericAttributes = nil },
				func(op *entity.Op) { op.Owner = entity.Address{} },
			} {
				attempt(func(s *step) { change(&s.Blocks[i].Ops[j]) })
			}
		}
	}
	for i := range s.Questions {
		for smaller := true; smaller; {
			smaller = slices.ContainsFunc(terms(s.Questions[i].Expr), func(e query.Expr) bool {
				return attempt(func(s *step) { s.Questions[i].Expr = e })
			})
		}
		shorten(s.Questions[i].Order, func(list []store.Order) bool { return attempt(func(s *step) { s.Questions[i].Order = list }) })
		if s.Questions[i].After != nil {
			attempt(func(s *step) { s.Questions[i].After = nil })
		}
	}
	return s
}

// terms returns the terms of an expression.
func terms(e query.Expr) []query.Expr {
	switch e := e.(type) {
	case query.And:
		return e.Terms
	case query.Or:
		return e.Terms
	case query.Not:
		return []query.Expr{e.Term}
	}
	return nil
}
