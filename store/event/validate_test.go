package event_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/event"
)

func tags(n int) []event.Tag {
	list := make([]event.Tag, n)
	for i := range list {
		list[i] = event.NewTag("k", strings.Repeat("v", i))
	}
	return list
}

// TestLimits: values at a limit are accepted, values beyond it are not, and the
// error names the limit and the remedy.
func TestLimits(t *testing.T) {
	some := make([]event.Event, event.MaxEvents)
	for i := range some {
		some[i].Type = "A"
	}
	big := make([]byte, event.MaxData)
	bigs := make([]event.Event, event.MaxAppendBytes/event.MaxData)
	for i := range bigs {
		bigs[i] = event.Event{Type: "A", Data: big}
	}
	for name, c := range map[string]struct {
		events []event.Event
		says   string // "" is valid
	}{
		"nothing":         {nil, "no events to append"},
		"many":            {some, ""},
		"too many":        {append(some, some[0]), "at most 100000; cut it into several"},
		"type":            {[]event.Event{{Type: strings.Repeat("t", event.MaxType)}}, ""},
		"long type":       {[]event.Event{{Type: strings.Repeat("t", event.MaxType+1)}}, "a type of 257 bytes, at most 256"},
		"empty type":      {[]event.Event{{}}, "no type"},
		"NUL in a type":   {[]event.Event{{Type: "a\x00"}}, "U+0000"},
		"type not UTF-8":  {[]event.Event{{Type: "\xc0"}}, "UTF-8"},
		"tags":            {[]event.Event{{Type: "A", Tags: tags(event.MaxTags)}}, ""},
		"too many tags":   {[]event.Event{{Type: "A", Tags: tags(event.MaxTags + 1)}}, "129 tags, at most 128"},
		"tag twice":       {[]event.Event{{Type: "A", Tags: append(tags(3), tags(1)...)}}, "given twice"},
		"tag":             {[]event.Event{{Type: "A", Tags: []event.Tag{{Key: "k", Value: strings.Repeat("v", event.MaxTag-1)}}}}, ""},
		"long tag":        {[]event.Event{{Type: "A", Tags: []event.Tag{{Key: "k", Value: strings.Repeat("v", event.MaxTag)}}}}, "has 1025 bytes, at most 1024"},
		"tag without key": {[]event.Event{{Type: "A", Tags: []event.Tag{{Value: "v"}}}}, "tag 1 has no key"},
		"tag not UTF-8":   {[]event.Event{{Type: "A", Tags: []event.Tag{{Key: "k", Value: "\xff"}}}}, "not UTF-8"},
		"data":            {[]event.Event{{Type: "A", Data: big}}, ""},
		"large data":      {[]event.Event{{Type: "A", Data: append(big, 0)}}, "keep a reference"},
		"metadata":        {[]event.Event{{Type: "A", Metadata: big[:event.MaxMetadata]}}, ""},
		"large metadata":  {[]event.Event{{Type: "A", Metadata: big[:event.MaxMetadata+1]}}, "1048577 bytes of metadata, at most 1048576"},
		"bytes":           {bigs, ""},
		"too many bytes":  {append(bigs, event.Event{Type: "A", Data: []byte{0}}), "cut it into several"},
		"ID twice":        {[]event.Event{{Type: "A", ID: event.ID{1}}, {Type: "B"}, {Type: "C", ID: event.ID{1}}}, "events 1 and 3 of the append have the same ID"},
		"no ID twice":     {[]event.Event{{Type: "A"}, {Type: "A"}}, ""},
		"the second":      {[]event.Event{{Type: "A"}, {}}, "event 2 of 2: "},
	} {
		t.Run(name, func(t *testing.T) { requireSays(t, c.says, event.Validate(c.events)) })
	}
}

func requireSays(t *testing.T, says string, err error) {
	t.Helper()
	if says == "" {
		require.NoError(t, err)
		return
	}
	require.ErrorIs(t, err, event.ErrInvalid)
	require.ErrorContains(t, err, says)
}

func TestQueryLimits(t *testing.T) {
	items := func(n int) event.Query {
		q := event.Query{Items: make([]event.Item, n)}
		for i := range q.Items {
			q.Items[i].Types = []string{"A"}
		}
		return q
	}
	types := make([]string, event.MaxItemTypes+1)
	for i := range types {
		types[i] = "A"
	}
	for name, c := range map[string]struct {
		q    event.Query
		says string
	}{
		"all":            {event.All(), ""},
		"items":          {items(event.MaxItems), ""},
		"too many items": {items(event.MaxItems + 1), "10001 items, at most 10000"},
		"empty item":     {event.Query{Items: []event.Item{{Types: []string{"A"}}, {}}}, "item 2 of the query: invalid: neither types nor tags"},
		"types":          {event.Of(types[1:]...), ""},
		"too many types": {event.Of(types...), "129 types, at most 128"},
		"tags":           {event.Tagged(tags(event.MaxItemTags)...), ""},
		"too many tags":  {event.Tagged(tags(event.MaxItemTags + 1)...), "17 tags, at most 16"},
		"empty type":     {event.Of(""), "no type"},
		"tag twice":      {event.Tagged(event.NewTag("a", "b"), event.NewTag("a", "b")), "given twice"},
	} {
		t.Run(name, func(t *testing.T) { requireSays(t, c.says, c.q.Validate()) })
	}
}
