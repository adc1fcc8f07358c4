package service_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/service"
	"github.com/varvedb/varve/internal/service/seal"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/event"
)

func rawEvents(t testing.TB, db *store.DB) *store.Events {
	t.Helper()
	events, err := db.Events(context.Background(), nil)
	require.NoError(t, err)
	return events
}

func collect(seq iter.Seq2[event.Sequenced, error]) (list []event.Sequenced, err error) {
	for e, err := range seq {
		if err != nil {
			return list, err
		}
		list = append(list, e)
	}
	return list, nil
}

// secret returns an event with everything; without an ID when n is zero.
func secret(n int) event.Event {
	e := event.Event{
		Type: "Secret", Data: []byte(fmt.Sprintf("secret data %d", n)), Metadata: []byte(fmt.Sprintf("secret metadata %d", n)),
		Tags: []event.Tag{event.NewTag("b", fmt.Sprint(n)), event.NewTag("a", "x")},
	}
	if n > 0 {
		copy(e.ID[:], fmt.Sprintf("id %d", n))
	}
	return e
}

// TestEventKeysChange: when the keys of a service change, so do the keys of its
// events.
func TestEventKeysChange(t *testing.T) {
	ctx, db := t.Context(), fresh(t)
	s := start(t, db, service.Options{Keys: keyring(t, 1)})
	_, err := s.Events().Append(ctx, []event.Event{secret(1)}, nil)
	require.NoError(t, err)
	require.ErrorIs(t, s.SetKeys(ctx, keyring(t, 2)), seal.ErrUnknownKey, "the newest event could not be read")
	require.NoError(t, s.SetKeys(ctx, keyring(t, 1, 2)))
	_, err = s.Events().Append(ctx, []event.Event{secret(0), secret(2)}, nil)
	require.NoError(t, err)
	again, err := s.Events().Append(ctx, []event.Event{secret(1)}, nil)
	require.NoError(t, err)
	require.Equal(t, []uint64{1}, again, "repeated, though sealed under the key before")
	opened, err := collect(s.Events().Read(ctx, event.All(), nil))
	require.NoError(t, err)
	require.Len(t, opened, 3)
	s.Close()
	opened, err = collect(start(t, db, service.Options{Keys: keyring(t, 2)}).Events().Read(ctx, event.All(), &event.ReadOptions{From: 2}))
	require.NoError(t, err)
	require.Len(t, opened, 2)
}

// TestSealedEvents: what events hold is sealed in the store and nowhere else.
func TestSealedEvents(t *testing.T) {
	ctx, db := t.Context(), fresh(t)
	events := start(t, db, service.Options{Keys: keyring(t, 1)}).Events()
	given := []event.Event{secret(0), secret(0), secret(1), {Type: "Empty"}, {Type: "Metadata", Metadata: []byte("secret")}, {Type: "Data", Data: []byte("secret"), ID: event.ID{1}}}
	positions, err := events.Append(ctx, given, nil)
	require.NoError(t, err)

	stored, err := collect(rawEvents(t, db).Read(ctx, event.All(), nil))
	require.NoError(t, err)
	for i, e := range stored {
		require.True(t, seal.IsSealed(e.Data))
		require.NotContains(t, string(e.Data), "secret")
		require.Empty(t, e.Metadata)
		require.Equal(t, given[i].Type, e.Type, "queries find it")
	}
	require.NotEqual(t, stored[0].Data, stored[1].Data, "equal events without an ID are not equal to who reads the store")

	opened, err := collect(events.Read(ctx, event.All(), nil))
	require.NoError(t, err)
	require.Len(t, opened, len(given))
	for i := range opened {
		require.True(t, given[i].Equal(&opened[i].Event), "%+v", opened[i])
		require.Equal(t, positions[i], opened[i].Position)
	}
	for e, err := range events.Subscribe(ctx, event.Tagged(event.NewTag("b", "1")), 0) {
		require.NoError(t, err)
		require.Equal(t, "secret data 1", string(e.Data))
		break
	}
	head, err := events.Head(ctx)
	require.NoError(t, err)
	require.Equal(t, positions[len(positions)-1], head)
	_, err = events.Append(ctx, []event.Event{secret(0)}, event.Unless(event.Of("Secret")))
	require.ErrorIs(t, err, store.ErrConflict)
}

// TestRepeatSealed: a repeated append is recognized by its contents, also after
// another key has become the newest.
func TestRepeatSealed(t *testing.T) {
	ctx, db := t.Context(), fresh(t)
	batch := []event.Event{secret(1), secret(2)}
	reordered := secret(1)
	reordered.Tags = []event.Tag{reordered.Tags[1], reordered.Tags[0]}
	other := secret(2)
	other.Metadata = []byte("other")
	shifted := secret(2)
	shifted.Data, shifted.Metadata = append(bytes.Clone(shifted.Data), 's'), shifted.Metadata[1:]
	for i, keys := range []*seal.Keyring{keyring(t, 1), keyring(t, 1, 2), keyring(t, 1, 2, 3)} {
		s := start(t, db, service.Options{Keys: keys})
		events := s.Events()
		for range 2 {
			positions, err := events.Append(ctx, batch, event.Unless(event.All()))
			require.NoError(t, err)
			require.Equal(t, []uint64{1, 2}, positions)
		}
		positions, err := events.Append(ctx, []event.Event{reordered}, nil)
		require.NoError(t, err)
		require.Equal(t, []uint64{1}, positions)
		for _, list := range [][]event.Event{{other}, {shifted}, {secret(1), other}, {secret(1), secret(100 + i)}, {secret(1), secret(0)}} {
			_, err := events.Append(ctx, list, nil)
			require.ErrorIs(t, err, event.ErrDuplicate)
		}
		fresh, err := events.Append(ctx, []event.Event{secret(10 + i)}, nil)
		require.NoError(t, err)
		require.Equal(t, []uint64{uint64(3 + i)}, fresh, "nothing else was stored")
		s.Close()
	}
	s := start(t, db, service.Options{Keys: keyring(t, 3, 2, 1)})
	opened, err := collect(s.Events().Read(ctx, event.All(), nil))
	require.NoError(t, errors.Join(err, rawEvents(t, db).Truncate(ctx, 6, nil)))
	require.Len(t, opened, 5, "whatever key is the newest")
	s.Close()
	start(t, db, service.Options{Keys: keyring(t, 3)}) // no event has data
}

// TestForeignEvents: content that was not sealed for an event is an error and
// not a result.
func TestForeignEvents(t *testing.T) {
	ctx, db := t.Context(), fresh(t)
	keys := service.Options{Keys: keyring(t, 1)}
	s := start(t, db, keys)
	_, err := s.Events().Append(ctx, []event.Event{secret(1)}, nil)
	require.NoError(t, err)
	raw := rawEvents(t, db)
	stored, err := collect(raw.Read(ctx, event.All(), nil))
	require.NoError(t, err)
	moves := byte(0)
	moved := func(change func(e *event.Event)) event.Event {
		e := stored[0].Event
		moves++
		e.ID[15] = moves
		change(&e)
		return e
	}
	same := func(*event.Event) {}
	for name, c := range map[string]struct {
		e     event.Event
		cause error
	}{
		"another ID":   {moved(same), seal.ErrTampered},
		"no ID":        {moved(func(e *event.Event) { e.ID = event.ID{} }), seal.ErrTampered},
		"another type": {moved(func(e *event.Event) { e.ID, e.Type = event.ID{}, "Other" }), seal.ErrTampered},
		"fewer tags":   {moved(func(e *event.Event) { e.ID, e.Tags = event.ID{}, e.Tags[:1] }), seal.ErrTampered},
		"metadata":     {moved(func(e *event.Event) { e.Metadata = []byte("m") }), seal.ErrNotSealed},
		"not sealed":   {event.Event{Type: "Secret", Data: []byte("plain")}, seal.ErrNotSealed},
		"nothing":      {event.Event{Type: "Secret"}, seal.ErrNotSealed},
	} {
		positions, err := raw.Append(ctx, []event.Event{c.e}, nil)
		require.NoError(t, err)
		_, err = collect(s.Events().Read(ctx, event.All(), &event.ReadOptions{From: positions[0], Limit: 1}))
		require.ErrorIs(t, err, c.cause, name)
		require.ErrorContains(t, err, fmt.Sprintf("event %d: ", positions[0]))
		list, err := collect(s.Events().Subscribe(ctx, event.All(), 1))
		require.Error(t, err)
		require.Len(t, list, 1, "what comes before is given")
		require.NotContains(t, err.Error(), "secret")
	}
	s.Close()
	start(t, db, keys).Close() // events from before they were sealed do not keep it from starting
	_, err = raw.Append(ctx, []event.Event{moved(same)}, nil)
	require.NoError(t, err)
	for _, o := range []service.Options{{}, {Keys: keyring(t, 2)}} {
		_, err = service.New(ctx, db, o)
		require.ErrorIs(t, err, seal.ErrUnknownKey)
	}
}

// TestPlainEvents: without keys nothing may look like sealed, in either direction.
func TestPlainEvents(t *testing.T) {
	ctx, db := t.Context(), fresh(t)
	events := start(t, db, service.Options{}).Events()
	sealed := keyring(t, 1).Seal([]byte("o"), nil)
	_, err := events.Append(ctx, []event.Event{{Type: "A"}, {Type: "B", Data: sealed}}, nil)
	require.ErrorIs(t, err, store.ErrInvalid)
	require.ErrorContains(t, err, "event 2 of 2")
	_, err = rawEvents(t, db).Append(ctx, []event.Event{{Type: "B", Data: sealed}}, nil)
	require.NoError(t, err)
	_, err = collect(events.Read(ctx, event.All(), nil))
	require.ErrorIs(t, err, seal.ErrUnknownKey)
}

// TestSealedSizes: the largest event is smaller by what sealing adds.
func TestSealedSizes(t *testing.T) {
	events := start(t, fresh(t), service.Options{Keys: keyring(t, 1), MaxPayload: event.MaxData}).Events()
	sized := func(n int) []event.Event { return []event.Event{{Type: "A", Data: make([]byte, n)}} }
	const most = event.MaxData - seal.Overhead - 4
	_, err := events.Append(t.Context(), sized(most), nil)
	require.NoError(t, err)
	for _, n := range []int{most + 1, event.MaxData + 1} {
		_, err = events.Append(t.Context(), sized(n), nil)
		require.ErrorIs(t, err, store.ErrInvalid)
		require.ErrorContains(t, err, "keep a reference")
	}
}

// TestKeyOfTheNewestPayload: a service does not start without the key of the payload that was written
// last, however old its entity is.
func TestKeyOfTheNewestPayload(t *testing.T) {
	ctx, db := t.Context(), fresh(t)
	s := start(t, db, service.Options{Keys: keyring(t, 1)})
	for n := range 20 {
		_, err := s.Put(ctx, put(n, "old"))
		require.NoError(t, err)
	}
	require.NoError(t, s.SetKeys(ctx, keyring(t, 1, 2)))
	_, err := s.Put(ctx, put(3, "new"))
	require.NoError(t, err)
	for n := range 9 { // blocks without a payload
		_, err = s.Delete(ctx, key(10+n), service.Guard{})
		require.NoError(t, err)
	}
	require.ErrorIs(t, s.SetKeys(ctx, keyring(t, 1)), seal.ErrUnknownKey)
	require.NoError(t, s.SetKeys(ctx, keyring(t, 2)), "of the newest alone")
	s.Close()
	_, err = service.New(ctx, db, service.Options{Keys: keyring(t, 1)})
	require.ErrorIs(t, err, seal.ErrUnknownKey)
	require.ErrorContains(t, err, key(3).String())
}
