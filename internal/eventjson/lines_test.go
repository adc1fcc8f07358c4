package eventjson_test

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/varvedb/varve/internal/eventjson"
	"github.com/varvedb/varve/store/event"
)

// TestLines: events are read back to the byte, whatever they are.
func TestLines(t *testing.T) {
	text := rapid.OneOf(rapid.SliceOf(rapid.Byte()), rapid.Map(rapid.SampledFrom([]string{
		"", "null", "{}", `"\ud800"`, "{\"a\":1,\"a\":null}", "\ufeff1", `{"a": 1}`, `{"a":1}`, ` 1`, "1\n", `"<&>"`, "\"\u2028\"", `"\u003c"`, "\"\xff\"", `[1,2]`, `1e5`, "\"\x7f\"",
	}), func(s string) []byte { return []byte(s) }))
	rapid.Check(t, func(rt *rapid.T) {
		var want []event.Sequenced
		for i := range rapid.IntRange(0, 4).Draw(rt, "events") {
			ev := event.Sequenced{Position: uint64(i + 1), Time: time.UnixMicro(rapid.Int64Range(1, 1<<52).Draw(rt, "time")).UTC()}
			ev.Type, ev.Data, ev.Metadata = rapid.StringN(1, 5, -1).Draw(rt, "type"), text.Draw(rt, "data"), text.Draw(rt, "metadata")
			copy(ev.ID[:], text.Draw(rt, "id"))
			for range rapid.IntRange(0, 2).Draw(rt, "tags") {
				ev.Tags = append(ev.Tags, event.NewTag(rapid.StringN(1, 3, -1).Draw(rt, "key"), rapid.String().Draw(rt, "value")))
			}
			want = append(want, ev)
		}
		var lines bytes.Buffer
		err := eventjson.Write(&lines, func(yield func(event.Sequenced, error) bool) {
			for _, ev := range want {
				if !yield(ev, nil) {
					return
				}
			}
		})
		if err != nil {
			rt.Fatal(err)
		}
		if n := strings.Count(lines.String(), "\n"); n != len(want) {
			rt.Fatalf("%d lines of %d events", n, len(want))
		}
		n := 0
		for got, err := range eventjson.Lines(&lines) {
			if err != nil {
				rt.Fatal(err)
			}
			if w := want[n]; got.Position != w.Position || !got.Time.Equal(w.Time) || !got.Equal(&w.Event) {
				rt.Fatalf("got %+v, want %+v", got, w)
			}
			n++
		}
		if n != len(want) {
			rt.Fatalf("%d events of %d", n, len(want))
		}
	})
}

func TestLinesErrors(t *testing.T) {
	for text, want := range map[string]string{
		"{\"type\":\"A\"}\n\n{":                    "line 3, column 2",
		"{\"type\":\"A\"} rubbish\n":               "line 1, column 14: invalid: something follows the value",
		"{\"type\":\"A\",\"tags\":[],\"tags\":[]}": "line 1, column 23: invalid: the name \"tags\" is given twice",
		"{}\n\u00a0\n":                             "line 2, column 1",
		`{"type":"A","time":"yesterday"}`:          "line 1: invalid: time",
		"{\"type\":\"A\"}\n{\"type\":\"A\",\"time\":\"0001-01-01T00:00:00Z\"}": "line 2: invalid: time 0001-01-01T00:00:00Z is not after 1970",
		`{"type":"A","time":"1970-01-01T00:00:00.0000009Z"}`:                   "line 1: invalid: time 1970-01-01T00:00:00Z is not after 1970",
		`{"type":"A","unknown":1}`:                                             "line 1",
		`{"type":"A","tags":[["only"]]}`:                                       "want a key and a value",
		`{"type":"A","id":"0"}`:                                                "not an ID",
		`{"type":"A","position":-1}`:                                           "line 1",
		`{"type":"A","data":1,"data_base64":"AA=="}`:                           "given as JSON and in base 64",
	} {
		var last error
		for _, err := range eventjson.Lines(strings.NewReader(text)) {
			last = err
		}
		require.ErrorIs(t, last, event.ErrInvalid, text)
		require.ErrorContains(t, last, want, text)
	}
}

// spaces is a reader with a line of spaces that does not end for a long time;
// taken counts the bytes that were read.
type spaces struct{ taken int }

func (s *spaces) Read(p []byte) (int, error) {
	if s.taken >= 8*eventjson.MaxLine {
		return 0, io.EOF
	}
	for i := range p {
		p[i] = ' '
	}
	s.taken += len(p)
	return len(p), nil
}

// TestLongLine: the line of the largest event is read, and no more of a longer one than that.
func TestLongLine(t *testing.T) {
	large := event.Sequenced{Position: 1, Time: time.Now(), Event: event.Event{Type: "A", Data: make([]byte, event.MaxData), Metadata: make([]byte, event.MaxMetadata)}}
	for i := range event.MaxTags {
		large.Tags = append(large.Tags, event.NewTag(fmt.Sprintf("%04d", i), strings.Repeat("\x01", event.MaxTag-4)))
	}
	require.NoError(t, event.Validate([]event.Event{large.Event}))
	var text bytes.Buffer
	require.NoError(t, eventjson.Write(&text, func(yield func(event.Sequenced, error) bool) { yield(large, nil) }))
	for got, err := range eventjson.Lines(&text) {
		require.NoError(t, err)
		require.True(t, got.Equal(&large.Event))
	}

	long := &spaces{}
	n := 0
	for _, err := range eventjson.Lines(io.MultiReader(strings.NewReader("{}\n"), long)) {
		if n++; n == 1 {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, event.ErrInvalid)
		require.ErrorContains(t, err, fmt.Sprintf("line 2: invalid: the line is longer than %d bytes", eventjson.MaxLine))
	}
	require.Equal(t, 2, n)
	require.Less(t, long.taken, 2*eventjson.MaxLine)
}
