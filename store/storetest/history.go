package storetest

import (
	"bytes"
	"embed"
	"fmt"
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

	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/event"
	"github.com/varvedb/varve/store/query"
	"github.com/varvedb/varve/store/storetest/model"
)

// step is one line of a history: a call with all its arguments. A step draws no
// random numbers, so that a history can be replayed. Any part of a history is a
// valid history too: if a missing step makes a call invalid, the model expects
// that.
type step struct {
	Do string // a name that verb knows

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

// written are the JSON options for steps: zero fields are left out, and values
// are written by their String method.
var written = json.JoinOptions(
	json.Deterministic(true), json.OmitZeroStructFields(true),
	json.RejectUnknownMembers(true), jsontext.SpaceAfterComma(true),
	json.WithMarshalers(json.JoinMarshalers(
		named[entity.Kind](), named[entity.Key](), named[entity.Address](), named[query.Expr](), named[event.ID](),
	)),
	json.WithUnmarshalers(json.JoinUnmarshalers(
		parsed(parseKind), parsed(entity.ParseKey), parsed(entity.ParseAddress), parsed(query.Parse), parsed(event.ParseID),
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
func formatHistory[S any](history []S) string {
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
func parseHistory[S any](t testing.TB, text string) (history []S) {
	t.Helper()
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		var s S
		require.NoError(t, json.Unmarshal([]byte(line), &s, written), line)
		history = append(history, s)
	}
	return history
}

//go:embed testdata
var keptHistories embed.FS

// keptIn returns the histories in a directory of testdata, which have failed
// once, by name. To keep another one, add the text that fail prints.
func keptIn[S any](t *testing.T, dir string) map[string][]S {
	list := map[string][]S{}
	for _, file := range must(keptHistories.ReadDir(dir))(t) {
		if name, is := strings.CutSuffix(file.Name(), ".jsonl"); is {
			list[name] = parseHistory[S](t, string(must(keptHistories.ReadFile(path.Join(dir, file.Name())))(t)))
		}
	}
	return list
}

const (
	keptEntityHistories = "testdata"
	keptEventHistories  = "testdata/events"
)

// player runs the steps of a history on a store and on its model.
type player[S any] interface {
	do(S)
	checkState()
	close()
}

// replay runs a history from its beginning.
func replay[S any](m player[S], history []S) {
	defer m.close()
	for _, s := range history {
		m.do(s)
	}
	m.checkState()
}

// trial is a test within a test: if it fails, the outer test continues.
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

// fail reports a failing history, reduced, as text that can be kept in a
// directory. Start returns a player with a new store.
func fail[S any](t testing.TB, dir string, start func(t testing.TB) player[S], history []S, failure string) {
	t.Helper()
	var last string
	deadline := time.Now().Add(reduceTime)
	more := func() bool { return time.Now().Before(deadline) }
	fails := func(history []S) bool {
		found := try(t, func(t testing.TB) { replay(start(t), history) })
		if found != "" {
			last = found
		}
		return found != ""
	}
	if !fails(history) {
		t.Fatalf("%s\nThe history does not fail when it is replayed, so it is not reduced:\n%s",
			failure, formatHistory(history))
	}
	reduced := reduce(history, more, fails)
	t.Logf("%s\nThe failure of the reduced history:\n%s", failure, last)
	t.Fatalf("To replay it, keep these %d of %d steps in store/storetest/%s/NAME.jsonl:\n%s",
		len(reduced), len(history), dir, formatHistory(reduced))
}

// reduce removes steps of a failing history, and parts of steps, as long as it
// still fails and there is time. The first step, which opens the store, stays.
// The remaining steps are reduced in place.
func reduce[S any](history []S, more func() bool, fails func([]S) bool) []S {
	for before := ""; more() && before != formatHistory(history); {
		before = formatHistory(history)
		rest := shorten(history[1:], more, func(rest []S) bool {
			return fails(append(history[:1:1], rest...))
		})
		history = append(history[:1:1], rest...)
		r := reducer{more, func() bool { return fails(history) }}
		for i := range history {
			r.reduce(reflect.ValueOf(&history[i]).Elem())
		}
	}
	return history
}

// shorten removes elements of a list as long as it still fails: half of the
// list first, single elements at the end.
func shorten[T any](list []T, more func() bool, fails func([]T) bool) []T {
	for n := len(list); n > 0; n /= 2 {
		for at := 0; at < len(list) && more(); {
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

// reducer reduces values that are parts of a history.
type reducer struct{ more, fails func() bool }

// attempt replaces a value, and undoes that unless the history still fails.
func (r reducer) attempt(v, other reflect.Value) bool {
	if !r.more() {
		return false
	}
	old := reflect.New(v.Type()).Elem()
	old.Set(v)
	v.Set(other)
	failed := r.fails()
	if !failed {
		v.Set(old)
	}
	return failed
}

// reduce makes a value zero, or removes parts of it. Required names and numbers
// stay. All others may have any value, because the model knows which values a
// store refuses.
func (r reducer) reduce(v reflect.Value) {
	switch is := v.Interface().(type) {
	case entity.Kind, entity.Key, event.ID, string:
		return
	case query.Expr:
		for _, e := range terms(is) {
			if r.attempt(v, reflect.ValueOf(e)) {
				r.reduce(v)
				return
			}
		}
		return
	case time.Time, []byte:
		if !v.IsZero() {
			r.attempt(v, reflect.Zero(v.Type()))
		}
		return
	}
	if v.IsZero() || v.Kind() != reflect.Struct && r.attempt(v, reflect.Zero(v.Type())) {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		r.reduce(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() {
				r.reduce(f)
			}
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			other := reflect.MakeMap(v.Type())
			for _, k := range v.MapKeys() {
				if k.Interface() != key.Interface() {
					other.SetMapIndex(k, v.MapIndex(k))
				}
			}
			r.attempt(v, other)
		}
	case reflect.Slice:
		places := make([]int, v.Len())
		for i := range places {
			places[i] = i
		}
		whole := reflect.ValueOf(v.Interface())
		shorten(places, r.more, func(places []int) bool {
			other := reflect.Zero(v.Type())
			for _, i := range places {
				other = reflect.Append(other, whole.Index(i))
			}
			return r.attempt(v, other)
		})
		for i := range v.Len() {
			r.reduce(v.Index(i))
		}
	}
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
