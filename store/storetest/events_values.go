package storetest

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/event"
	"github.com/varvedb/varve/store/storetest/model"
)

func runEventAppend(t *testing.T, h Harness) {
	s := h.events(t)
	head := call(t, s.Head)
	require.Zero(t, head, "an empty store")
	require.Empty(t, s.all(t))

	given := valueEvents()
	begin := time.Now().Add(-time.Second)
	var positions []uint64
	for i := 0; i < len(given); i += 2 {
		positions = append(positions, s.add(t, given[i:min(i+2, len(given))]...)...)
	}
	for i := 1; i < len(positions); i++ {
		require.Greater(t, positions[i], positions[i-1], "positions grow")
	}
	head = call(t, s.Head)
	require.Equal(t, positions[len(positions)-1], head)

	list := s.all(t)
	require.Len(t, list, len(given))
	for i, got := range list {
		require.Equal(t, positions[i], got.Position)
		require.Equal(t, time.UTC, got.Time.Location())
		require.True(t, got.Time.After(begin))
		if i > 0 {
			require.False(t, got.Time.Before(list[i-1].Time), "times do not go back")
		}
		requireSame(t, given[i], got.Event)
		for _, tag := range given[i].Tags {
			found := s.read(t, event.Typed(given[i].Type, tag), nil)
			require.Contains(t, positionsOf(found), got.Position, "event %d by its tag %q", got.Position, tag)
		}
	}
	summary := call(t, s.own.Summary)
	require.Equal(t, uint64(len(given)), summary.Events)
}

// valueEvents returns events with values that are easily lost or mistaken for
// others.
func valueEvents() []event.Event {
	return []event.Event{
		ev("A", "one", "a:1"),
		{Type: "NoTags"},
		{Type: "Everything", Data: []byte("data"), Metadata: []byte(`{"by":"x"}`), Tags: tagList([]string{"a:1", "b:2"}), ID: idOf(1)},
		{Type: "Bytes", Data: []byte{0, 0xff, '\'', '"', 0x80}, Metadata: []byte{0}, Tags: []event.Tag{{Key: "k"}}},
		{Type: "Large", Data: bytes.Repeat([]byte("0123456789abcdef"), 20_000)},
		{Type: "2026-01-02 03:04:05", Data: []byte("2026-01-02"), Tags: []event.Tag{{Key: "2026-01-02", Value: "2026-01-02 03:04:05"}}},
		{Type: "Ünïcode 😀", Tags: []event.Tag{{Key: "😀", Value: "ü"}, {Key: "ü", Value: "😀"}}},
		{Type: "Ambiguous", Tags: []event.Tag{
			{Key: "a=b", Value: "c"}, {Key: "a", Value: "b=c"}, {Key: "a=", Value: "b=c"}, {Key: `a\`, Value: "=b=c"}, {Key: "a", Value: `\=b=c`},
			{Key: "x", Value: "y\x1fz"}, {Key: "x", Value: `y\sz`}, {Key: "x", Value: "y\x00z"}, {Key: "x", Value: `y\0z`}, {Key: "x\x00", Value: "\x00"},
			{Key: "e", Value: `\e`}, {Key: "1", Value: "2"}, {Key: " ", Value: " "}, {Key: "'", Value: `"`}, {Key: "%", Value: "_"},
		}},
		{Type: "Case", Tags: []event.Tag{{Key: "K", Value: "V"}, {Key: "k", Value: "v"}}},
		{Type: "Long", Tags: []event.Tag{{Key: "long", Value: strings.Repeat("v", event.MaxTag-4)}}},
		{Type: strings.Repeat("T", event.MaxType)},
	}
}

func runEventRefusals(t *testing.T, h Harness) {
	s := h.events(t)
	t.Run("invalid", func(t *testing.T) { refuseInvalid(t, s) })
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	refuse := func(ctx context.Context, want error) {
		refuses(t, want)(s.Append(ctx, []event.Event{ev("A", "a")}, nil))
		refuses(t, want)(model.Collect(s.Read(ctx, event.All(), nil)))
		refuses(t, want)(model.Collect(s.Subscribe(ctx, event.All(), 0)))
		refuses(t, want)(s.Head(ctx))
	}
	refuse(gone, context.Canceled)
	require.Empty(t, s.all(t), "what is refused leaves no trace")
	closeDB(t, s.db)
	refuse(t.Context(), store.ErrClosed)
}

// refuseInvalid: events that package event refuses do not reach the engine.
func refuseInvalid(t *testing.T, s eventStream) {
	good := ev("A", "a", "k:v")
	for name, c := range map[string]struct {
		events []event.Event
		cond   *event.Condition
		says   string
	}{
		"nothing":      {nil, nil, "no events"},
		"second event": {[]event.Event{good, {}}, nil, "event 2 of 2"},
		"many events":  {make([]event.Event, event.MaxEvents+1), nil, "cut it into several"},
		"ID twice":     {[]event.Event{{Type: "A", ID: idOf(1)}, {Type: "B", ID: idOf(1)}}, nil, "the same ID"},
		"empty item":   {[]event.Event{good}, event.Unless(anyOf(event.Item{})), "condition: item 1 of the query"},
	} {
		_, err := s.Append(t.Context(), c.events, c.cond)
		require.ErrorIs(t, err, store.ErrInvalid, name)
		require.ErrorContains(t, err, c.says)
	}
	for _, q := range []event.Query{anyOf(event.Item{}), event.Of("")} {
		refuses(t, store.ErrInvalid)(model.Collect(s.Read(t.Context(), q, nil)))
		refuses(t, store.ErrInvalid)(model.Collect(s.Subscribe(t.Context(), q, 0)))
	}
	refuses(t, store.ErrInvalid)(model.Collect(s.Read(t.Context(), event.All(), &event.ReadOptions{Limit: -1})))
	refuses(t, store.ErrInvalid)(event.Project(t.Context(), s))
}

func runEventOpen(t *testing.T, h Harness) {
	ctx := t.Context()
	s := h.events(t)
	s.add(t, ev("A", "a", "k:v"))
	again := call1(t, s.db.Events, nil)
	require.Same(t, s.own, again)
	for _, negative := range []store.EventOptions{{Queue: -1}, {PollInterval: -1}, {IndexEvery: -1}, {LockedRows: -1}} {
		refuses(t, store.ErrInvalid)(s.db.Events(ctx, &negative))
	}

	// Entities and events share a database.
	ents := call1(t, s.db.Entities, nil)
	must(ents.Apply(ctx, newBlock(1, on("x", opCreate(10)))))(t)
	closeDB(t, s.db)

	s = h.openEvents(t, s.url, store.EventOptions{})
	require.Equal(t, "a", s.names(t, event.All(), nil))
	require.Equal(t, []uint64{2}, s.add(t, ev("B", "b")), "positions go on")
	if h.Server {
		return
	}
	closeDB(t, s.db)
	s = streamOf(t, h.open(t, s.url, &store.Options{ReadOnly: true}), s.url, store.EventOptions{})
	require.Len(t, s.all(t), 2)
	refuses(t, store.ErrReadOnly)(s.Append(ctx, []event.Event{ev("A", "a")}, nil))
}

// runEventLayout: events of an unknown layout are refused, and the error names
// the command that moves them.
func runEventLayout(t *testing.T, h Harness) {
	s := h.events(t)
	inTx(t, s.db.Engine(), func(tx driver.Tx) {
		for _, text := range []string{"UPDATE varve_meta SET value = 'gin' WHERE name = 'events.layout'", "DELETE FROM varve_meta WHERE name = 'checksum'"} {
			exec(t, tx, text)
		}
	})
	closeDB(t, s.db)
	_, err := h.open(t, s.url, nil).Events(t.Context(), nil)
	require.ErrorIs(t, err, store.ErrLayout)
	require.ErrorContains(t, err, `"gin"`)
	require.ErrorContains(t, err, "varve events export")
}
