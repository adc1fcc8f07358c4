package strictjson_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/jsonuint"
	"github.com/varvedb/varve/internal/strictjson"
)

type document struct {
	Type    string                   `json:"type"`
	Tags    [][]string               `json:"tags"`
	Data    json.RawMessage          `json:"data"`
	N       jsonuint.Uint            `json:"n"`
	Texts   map[string]string        `json:"string_attributes"`
	Numbers map[string]jsonuint.Uint `json:"numeric_attributes"`
	Events  []document               `json:"events"`
}

// TestDecode: what would be lost or changed is an error at its place, or none (-1).
func TestDecode(t *testing.T) {
	for text, at := range map[string]int{
		`{}`: -1, " {\"type\" : \"A\" , \"tags\" : [ ] }\n": -1, "{}\r\n": -1,
		``: 0, ` `: 0, `{`: 1, `{"type":`: 8, `x`: 0, `{"type":"A",}`: 12,
		`{} {}`: 3, `{}{}`: 2, `{},`: 2, `{}x`: 2, "{}\x00": 2, `{"type":"A"} {"type":"B"}`: 13,
		"\ufeff{}": 0, "{}\ufeff": 2, "{\"type\":\"\ufeff\"}": -1,
		"{\"type\":\"\xff\"}": 9, "{\"data\":\"\xff\"}": 9, "{\"type\":\"\xed\xa0\x80\"}": 9, "{}\xff": 2,
		`{"type":"\ud800"}`: 9, `{"type":"\udc00"}`: 9, `{"type":"a\ud83dx\ude00"}`: 10, `{"type":"\ud83d\ud83d"}`: 9, `{"type":"\ud83d\u0041"}`: 9,
		`{"type":"\ud83d\ude00"}`: -1, `{"type":"\\ud800"}`: -1, `{"type":"\\\ud800"}`: 11, `{"type":"\u00e9\n\""}`: -1,
		`{"tags":[["a","\uD800"]]}`: 15, `{"string_attributes":{"\ud800":""}}`: 23,
		`{"data":"\ud800"}`: -1, `{"data":{"a":null,"a":[null,"\udfff",{"\ud800":1,"\ud800":2}]}}`: -1,
		`{"events":[{"data":["\ud800",null]},{"data":1}]}`: -1,
		`{"typ":""}`: 10, `{"n":1.5}`: 7, `{"n":"7"}`: -1, `{"type":1}`: 8,
		`{"type":"A","type":"B"}`: 12, `{"type":"A","Type":"B"}`: 12, `{"type":"A","t\u0079pe":"B"}`: 12, `{"data":1,"data":2}`: 10,
		`{"events":[{"type":"A"},{"type":"B"}]}`: -1, `{"events":[{"n":1,"n":2}]}`: 18,
		`{"string_attributes":{"a":"","A":""}}`: -1, `{"string_attributes":{"a":"","a":""}}`: 29,
		`null`: 0, `{"type":null}`: -1, `{"tags":null}`: -1, `{"tags":[null]}`: 9, `{"tags":[["a",null]]}`: 14,
		`{"numeric_attributes":null}`: -1, `{"numeric_attributes":{"a":null}}`: 27, `{"string_attributes":{"a":null}}`: 26,
		`{"events":[{"data":null,"type":null}]}`: -1, `{"data":null}`: -1,
	} {
		err := strictjson.Decode([]byte(text), &document{})
		if at < 0 {
			require.NoError(t, err, "%s", text)
			continue
		}
		var e *strictjson.Error
		require.True(t, errors.As(err, &e), "%s: %v", text, err)
		require.Equal(t, at, e.Offset, "%s: %v", text, err)
	}
}

// FuzzDecode: a document is read as encoding/json reads it, or refused.
func FuzzDecode(f *testing.F) {
	for _, text := range []string{`{"type":"\ud800"}`, `{"data":[1,{"a":"\\"}],"n":1e3}`, `{"tags":[["a","b"],[]]}`, "[1 , 2]", `"\\\""`, "{\"\":[{}]}", "null"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var strict, plain any
		if strictjson.Decode(text, &strict) != nil {
			return
		}
		if err := json.Unmarshal(text, &plain); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		require.Equal(t, plain, strict)
	})
}
