package eventlog

import (
	"slices"
	"strings"
)

// Merge returns fewer items that match the same events together. Items with
// equal tags become one, with the types of all, and an item goes when another
// one matches all of its events. A projector asks for each type of event of an
// entity separately, and for many entities together, so that after the merge
// the postings of most tags are read once.
func Merge(items []Item) []Item {
	if len(items) == 1 {
		return items
	}
	merged := make([]Item, 0, len(items))
	places := make(map[string]int, len(items))
	for i := range items {
		it := &items[i]
		key := tagsKey(it.tags)
		n, ok := places[key]
		if !ok {
			places[key] = len(merged)
			merged = append(merged, Item{types: slices.Clone(it.types), tags: it.tags})
			continue
		}
		to := &merged[n]
		if len(to.types) == 0 || len(it.types) == 0 {
			to.types = nil // any
			continue
		}
		to.types = append(to.types, it.types...)
	}
	for i := range merged {
		if it := &merged[i]; len(it.types) > 1 {
			it.types = sortedTypes(it.types)
		}
	}
	kept := make([]Item, 0, len(merged))
	for i := range merged {
		if !merged[i].covered(merged, places) {
			kept = append(kept, merged[i])
		}
	}
	return kept
}

// covered reports whether one of the merged items with none or one of the item's tags matches
// all that the item does. Places has the merged items by their tagsKey.
func (it *Item) covered(merged []Item, places map[string]int) bool {
	by := func(key string) bool {
		n, ok := places[key]
		return ok && merged[n].takes(it.types)
	}
	return len(it.tags) > 0 && by("") || len(it.tags) > 1 && slices.ContainsFunc(it.tags, by)
}

// takes reports whether a merged item takes the events of some types, or of all if none are
// given.
func (it *Item) takes(types []string) bool {
	return len(it.types) == 0 || len(types) > 0 && !slices.ContainsFunc(types, func(typ string) bool {
		_, ok := slices.BinarySearch(it.types, typ)
		return !ok
	})
}

// tagsKey is the same for the same set of tags.
func tagsKey(tags []string) string {
	if len(tags) <= 1 {
		return strings.Join(tags, "")
	}
	tags = slices.Clone(tags)
	slices.Sort(tags)
	return strings.Join(tags, separator)
}
