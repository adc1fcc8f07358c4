package event

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
)

// ErrUnregistered: a registry does not know an event type, a Go type, or the
// version of an event.
var ErrUnregistered = errors.New("not registered")

// Registry converts Go values into events and back; event data are JSON. Fill
// it with Register before use; after that several goroutines may use it.
//
// An event type keeps its name for ever, because queries and conditions use it.
// When the shape of its data changes, it gets a new version: add one Upcast to
// its registration, which converts data of the previous version when they are
// read. Stored events do not change. The version is the field "version" in the
// event's metadata, which then are a JSON object; other fields are the
// program's. Metadata without that field, or no metadata, mean version 1.
type Registry struct {
	byName map[string]*registered
	byType map[reflect.Type]*registered
}

type registered struct {
	name    string
	tags    func(v any) []Tag
	decode  func(data []byte) (any, error)
	upcasts []Upcast
}

func (r *registered) version() int { return 1 + len(r.upcasts) }

// Upcast converts data of one version to the next.
type Upcast func(data []byte) ([]byte, error)

// Upcasting returns the Upcast that decodes data as the old type and encodes the new one.
func Upcasting[Old, New any](f func(Old) (New, error)) Upcast {
	return func(data []byte) ([]byte, error) {
		var old Old
		if err := json.Unmarshal(data, &old); err != nil {
			return nil, err
		}
		v, err := f(old)
		if err != nil {
			return nil, err
		}
		return json.Marshal(v)
	}
}

// NewRegistry returns an empty registry.
func NewRegistry() *Registry {
	return &Registry{byName: map[string]*registered{}, byType: map[reflect.Type]*registered{}}
}

// Register registers type T for an event type. Tags returns the tags of a
// value; nil means none. The first upcast converts version 1 to 2, the next one
// 2 to 3, and so on; T is the last version. It panics when the name or T is
// registered already.
func Register[T any](r *Registry, name string, tags func(T) []Tag, upcasts ...Upcast) {
	goType := reflect.TypeFor[T]()
	if r.byName[name] != nil || r.byType[goType] != nil {
		panic(fmt.Sprintf("event: %q or %s is registered twice", name, goType))
	}
	one := &registered{name: name, upcasts: upcasts}
	one.tags = func(v any) []Tag {
		if tags == nil {
			return nil
		}
		return tags(v.(T))
	}
	one.decode = func(data []byte) (any, error) {
		var v T
		err := json.Unmarshal(data, &v)
		return v, err
	}
	r.byName[name], r.byType[goType] = one, one
}

// version is the part of the metadata that a registry reads.
type version struct {
	Version int `json:"version"`
}

// Encode returns the event of a value whose Go type is registered. The error wraps
// ErrUnregistered, or is that of encoding/json.
func (r *Registry) Encode(v any) (e Event, err error) {
	one := r.byType[reflect.TypeOf(v)]
	if one == nil {
		return e, fmt.Errorf("encode event: %w: Go type %T", ErrUnregistered, v)
	}
	e = Event{Type: one.name, Tags: one.tags(v)}
	if e.Data, err = json.Marshal(v); err != nil {
		return e, fmt.Errorf("encode event %s: %w", one.name, err)
	}
	if n := one.version(); n > 1 {
		e.Metadata, err = json.Marshal(version{n})
	}
	return e, err
}

// Decode returns the value of an event as the Go type that is registered for
// its type. It converts data of an older version first. The error wraps
// ErrUnregistered when the type is unknown or the version is newer than this
// program; otherwise it comes from encoding/json or an upcast.
func (r *Registry) Decode(e *Event) (any, error) {
	one := r.byName[e.Type]
	if one == nil {
		return nil, fmt.Errorf("decode event: %w: type %q", ErrUnregistered, e.Type)
	}
	was := version{1}
	if json.Unmarshal(e.Metadata, &was) != nil {
		was.Version = 1 // metadata of another kind
	}
	if was.Version < 1 || was.Version > one.version() {
		return nil, fmt.Errorf("decode event %s: %w: version %d, this program knows up to %d", e.Type, ErrUnregistered, was.Version, one.version())
	}
	data := e.Data
	for n, upcast := range one.upcasts[was.Version-1:] {
		var err error
		if data, err = upcast(data); err != nil {
			return nil, fmt.Errorf("event %s: from version %d to %d: %w", e.Type, was.Version+n, was.Version+n+1, err)
		}
	}
	v, err := one.decode(data)
	if err != nil {
		return nil, fmt.Errorf("decode event %s: %w", e.Type, err)
	}
	return v, nil
}
