package eventlog

import (
	"slices"
	"strings"
)

// Merge returns fewer items that match the same events together: those of equal tags are
// one, with the types of all. What a projector asks of an entity it asks of each type of
// event, so most items have their tags in common, whose postings are then read once.
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
			it.types = slices.Compact(slices.Sorted(slices.Values(it.types)))
		}
	}
	return merged
}

// tagsKey tells sets of tags apart.
func tagsKey(tags []string) string {
	if len(tags) <= 1 {
		return strings.Join(tags, "")
	}
	tags = slices.Clone(tags)
	slices.Sort(tags)
	return strings.Join(tags, separator)
}
