package event_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/event"
)

// The versions of an event: a name alone, then two names, then also a greeting.
type (
	registeredV1 struct{ Name string }
	registeredV2 struct{ First, Last string }
	registeredV3 struct{ First, Last, Greeting string }
)

func tagsV1(e registeredV1) []event.Tag { return []event.Tag{event.NewTag("name", e.Name)} }
func tagsV3(e registeredV3) []event.Tag { return []event.Tag{event.NewTag("name", e.First)} }

var (
	errNoName = errors.New("no name")
	toV2      = event.Upcasting(func(e registeredV1) (registeredV2, error) {
		if e.Name == "" {
			return registeredV2{}, errNoName
		}
		return registeredV2{First: e.Name, Last: "Smith"}, nil
	})
	toV3 = event.Upcasting(func(e registeredV2) (registeredV3, error) {
		return registeredV3{First: e.First, Last: e.Last, Greeting: "Hello"}, nil
	})
)

// TestRegistry: data of every version is read as the last one.
func TestRegistry(t *testing.T) {
	v1, v2, v3 := event.NewRegistry(), event.NewRegistry(), event.NewRegistry()
	event.Register(v1, "Registered", tagsV1)
	event.Register[registeredV2](v2, "Registered", nil, toV2)
	event.Register(v3, "Registered", tagsV3, toV2, toV3)

	first, err := v1.Encode(registeredV1{"Ann"})
	require.NoError(t, err)
	require.True(t, first.Equal(&event.Event{Type: "Registered", Tags: []event.Tag{event.NewTag("name", "Ann")}, Data: []byte(`{"Name":"Ann"}`)}))
	second, err := v2.Encode(registeredV2{"Bob", "Jones"})
	require.NoError(t, err)
	require.Empty(t, second.Tags)
	require.JSONEq(t, `{"version":2}`, string(second.Metadata))
	third, err := v3.Encode(registeredV3{"Cid", "King", "Hi"})
	require.NoError(t, err)

	second.Metadata = []byte(`{"by":"me","version":2}`)
	foreign := first
	foreign.Metadata = []byte("of another kind")
	for want, e := range map[registeredV3]*event.Event{
		{"Ann", "Smith", "Hello"}: &first, {"Bob", "Jones", "Hello"}: &second, {"Cid", "King", "Hi"}: &third,
	} {
		got, err := v3.Decode(e)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	got, err := v3.Decode(&foreign)
	require.NoError(t, err)
	require.Equal(t, registeredV3{"Ann", "Smith", "Hello"}, got)

	_, err = v2.Decode(&third)
	require.ErrorIs(t, err, event.ErrUnregistered)
	require.ErrorContains(t, err, "version 3, this program knows up to 2")
	_, err = v3.Decode(&event.Event{Type: "Registered", Data: []byte(`{}`)})
	require.ErrorIs(t, err, errNoName)
	require.ErrorContains(t, err, "from version 1 to 2")
	_, err = v3.Decode(&event.Event{Type: "Registered", Data: []byte(`{`), Metadata: []byte(`{"version":3}`)})
	require.ErrorContains(t, err, "decode event Registered: unexpected end")
	_, err = v3.Decode(&event.Event{Type: "Registered", Metadata: []byte(`{"version":0}`)})
	require.ErrorIs(t, err, event.ErrUnregistered)
	_, err = v3.Decode(&event.Event{Type: "Other"})
	require.ErrorIs(t, err, event.ErrUnregistered)
	_, err = v3.Encode(registeredV2{})
	require.ErrorIs(t, err, event.ErrUnregistered)
	_, err = v3.Encode(nil)
	require.ErrorIs(t, err, event.ErrUnregistered)
	require.Panics(t, func() { event.Register[string](v3, "Registered", nil) })
	require.Panics(t, func() { event.Register[registeredV3](v3, "Other", nil) })
}

// Events as values of Go: one type of event has two versions.
func ExampleRegistry() {
	r := event.NewRegistry()
	event.Register(r, "Registered", tagsV3, toV2, toV3)
	e, _ := r.Encode(registeredV3{First: "Ann", Last: "Lee", Greeting: "Hi"})
	fmt.Println(e.Type, e.Tags[0], string(e.Data), string(e.Metadata))

	old := event.Event{Type: "Registered", Data: []byte(`{"Name":"Bob"}`)}
	v, err := r.Decode(&old)
	fmt.Println(v, err)
	// Output:
	// Registered name:Ann {"First":"Ann","Last":"Lee","Greeting":"Hi"} {"version":3}
	// {Bob Smith Hello} <nil>
}
