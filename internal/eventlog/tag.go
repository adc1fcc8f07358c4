package eventlog

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/varvedb/varve/store/event"
)

// A tag is stored as one text, key=value, so that one column is compared and
// people can read it. A backslash escapes what would be ambiguous: itself, an
// equals sign in the key, the separator of an event's list of tags, and U+0000,
// which some engines cannot store.
const (
	separator = "\x1f"
	special   = "\\" + separator + "\x00"
)

var (
	escapeKey   = strings.NewReplacer(`\`, `\\`, separator, `\s`, "\x00", `\0`, "=", `\e`)
	escapeValue = strings.NewReplacer(`\`, `\\`, separator, `\s`, "\x00", `\0`)
	unescape    = strings.NewReplacer(`\\`, `\`, `\s`, separator, `\0`, "\x00", `\e`, "=")
)

// encodeTag returns the text of a tag.
func encodeTag(t event.Tag) string {
	key, value := t.Key, t.Value
	if strings.ContainsAny(key, special+"=") {
		key = escapeKey.Replace(key)
	}
	if strings.ContainsAny(value, special) {
		value = escapeValue.Replace(value)
	}
	return key + "=" + value
}

// decodeTag reads back what encodeTag made.
func decodeTag(text string) (event.Tag, error) {
	key, value, ok := strings.Cut(text, "=")
	if !ok || key == "" {
		return event.Tag{}, fmt.Errorf("not a tag: %q", text)
	}
	if strings.IndexByte(text, '\\') >= 0 {
		key, value = unescape.Replace(key), unescape.Replace(value)
	}
	return event.Tag{Key: key, Value: value}, nil
}

// decodeTags reads back a list of tags.
func decodeTags(text string) ([]event.Tag, error) {
	if text == "" {
		return nil, nil
	}
	tags := make([]event.Tag, 0, strings.Count(text, separator)+1)
	for one := range strings.SplitSeq(text, separator) {
		t, err := decodeTag(one)
		if err != nil {
			return nil, err
		}
		tags = append(tags, t)
	}
	return tags, nil
}

// typeMark begins the term of a type. No tag begins with it, since no key is empty
// and an equals sign in a key is escaped.
const typeMark = '='

func typeTerm(typ string) string { return string(typeMark) + typ }

// splitTags returns the texts of a list of tags.
func splitTags(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, separator)
}

// Record is an event made ready for writing.
type Record struct {
	Event  *event.Event
	Micros int64    // the event's own time; zero is the time of writing
	tags   []string // encoded
}

// tagList returns the text of all tags, as it is stored.
func (r *Record) tagList() string { return strings.Join(r.tags, separator) }

// Prepare makes events ready for writing. They must be valid, and must not change
// until they are written.
func Prepare(events []event.Event) []Record {
	records := make([]Record, len(events))
	total := 0
	for i := range events {
		total += len(events[i].Tags)
	}
	all := make([]string, 0, total)
	for i := range events {
		e := &events[i]
		begin := len(all)
		for _, t := range e.Tags {
			all = append(all, encodeTag(t))
		}
		records[i] = Record{Event: e, tags: all[begin:len(all):len(all)]}
	}
	return records
}

// Item is one alternative of a compiled query. Without types and tags it matches
// every event.
type Item struct {
	types []string
	tags  []string // encoded
}

// all reports whether an item matches every event.
func (it *Item) all() bool { return len(it.types) == 0 && len(it.tags) == 0 }

// Compile makes a query ready for comparing. It must be valid.
func Compile(q event.Query) []Item {
	if len(q.Items) == 0 {
		return []Item{{}}
	}
	items := make([]Item, len(q.Items))
	for i := range q.Items {
		items[i].types = q.Items[i].Types
		if len(items[i].types) > 1 {
			items[i].types = sortedTypes(items[i].types)
		}
		for _, t := range q.Items[i].Tags {
			items[i].tags = append(items[i].tags, encodeTag(t))
		}
	}
	return items
}

// sortedTypes returns types in order, each once.
func sortedTypes(types []string) []string { return slices.Compact(slices.Sorted(slices.Values(types))) }

// matches reports whether an item matches an event with a type and tags.
func (it *Item) matches(typ string, tags []string) bool {
	if len(it.types) > 0 && !slices.Contains(it.types, typ) {
		return false
	}
	for _, t := range it.tags {
		if !slices.Contains(tags, t) {
			return false
		}
	}
	return true
}

// matchesRow is matches, of a row of the table.
func (it *Item) matchesRow(typ, tags []byte) bool {
	if len(it.types) > 0 && !containsBytes(it.types, typ) {
		return false
	}
	for _, want := range it.tags {
		if !hasTag(tags, want) {
			return false
		}
	}
	return true
}

// hasTag looks for a tag in a list of them.
func hasTag(tags []byte, want string) bool {
	for tag := range bytes.SplitSeq(tags, []byte(separator)) {
		if string(tag) == want {
			return true
		}
	}
	return false
}
