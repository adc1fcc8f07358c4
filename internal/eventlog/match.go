package eventlog

import (
	"bytes"
	"slices"
)

// matcher compares rows with many items at once: it looks at those of the row's type
// and tags only.
type matcher struct {
	items  []Item
	byType map[string][]int32 // items without tags
	byTag  map[string][]int32 // the others, under their first tag or each alternative
	all    []int32            // items that match everything
}

func newMatcher(items []Item) *matcher {
	m := &matcher{items: items, byType: map[string][]int32{}, byTag: make(map[string][]int32, len(items))}
	for i := range items {
		it, n := &items[i], int32(i)
		switch {
		case it.all():
			m.all = append(m.all, n)
		case len(it.tags) == 0:
			for _, typ := range it.types {
				m.byType[typ] = append(m.byType[typ], n)
			}
		case it.any:
			for _, tag := range it.tags {
				m.byTag[tag] = append(m.byTag[tag], n)
			}
		default:
			m.byTag[it.tags[0]] = append(m.byTag[it.tags[0]], n)
		}
	}
	return m
}

// each calls f with the number of each item that matches a row, perhaps twice, until f
// returns false.
func (m *matcher) each(typ, tags []byte, f func(item int32) bool) {
	for _, n := range m.all {
		if !f(n) {
			return
		}
	}
	for _, n := range m.byType[string(typ)] {
		if !f(n) {
			return
		}
	}
	if len(m.byTag) == 0 {
		return
	}
	for tag := range bytes.SplitSeq(tags, []byte(separator)) {
		for _, n := range m.byTag[string(tag)] {
			if m.items[n].matchesRow(typ, tags) && !f(n) {
				return
			}
		}
	}
}

// matches tells whether any item matches a row.
func (m *matcher) matches(typ, tags []byte) (found bool) {
	m.each(typ, tags, func(int32) bool { found = true; return false })
	return found
}

// matchesRow compares an item of which one tag is there.
func (it *Item) matchesRow(typ, tags []byte) bool {
	if len(it.types) > 0 && !slices.Contains(it.types, string(typ)) {
		return false
	}
	if it.any || len(it.tags) == 1 {
		return true
	}
	for _, want := range it.tags {
		if !hasText(tags, want) {
			return false
		}
	}
	return true
}

// hasText looks for a tag in a list of them.
func hasText(tags []byte, want string) bool {
	for tag := range bytes.SplitSeq(tags, []byte(separator)) {
		if string(tag) == want {
			return true
		}
	}
	return false
}
