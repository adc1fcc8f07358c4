package eventjson_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/varvedb/varve/internal/eventjson"
	"github.com/varvedb/varve/store/event"
)

// TestLines: what is written is read back to the byte, whatever it is.
func TestLines(t *testing.T) {
	text := rapid.OneOf(rapid.SliceOf(rapid.Byte()), rapid.Map(rapid.SampledFrom([]string{
		"", "null", "{}", `{"a": 1}`, `{"a":1}`, ` 1`, "1\n", `"<&>"`, "\"\u2028\"", `"\u003c"`, "\"\xff\"", `[1,2]`, `1e5`, "\"\x7f\"",
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
		"{\"type\":\"A\"}\n\n{":                      "line 3",
		`{"type":"A","time":"yesterday"}`:            "line 1: invalid operation: time",
		`{"type":"A","unknown":1}`:                   "line 1",
		`{"type":"A","tags":[["only"]]}`:             "want a key and a value",
		`{"type":"A","id":"0"}`:                      "not an ID",
		`{"type":"A","position":-1}`:                 "line 1",
		`{"type":"A","data":1,"data_base64":"AA=="}`: "given as JSON and in base 64",
	} {
		var last error
		for _, err := range eventjson.Lines(strings.NewReader(text)) {
			last = err
		}
		require.ErrorIs(t, last, event.ErrInvalid, text)
		require.ErrorContains(t, last, want, text)
	}
}
