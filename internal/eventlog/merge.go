package eventlog

import (
	"slices"
	"strings"
)

// Merge returns fewer items that match the same events together: one for all types,
// one for the types of equal tags, and one for all single tags of which the same types
// are wanted. So equal items are one. Of a query for everything nothing else is left.
func Merge(items []Item) []Item {
	if len(items) == 1 {
		return items
	}
	if slices.ContainsFunc(items, func(it Item) bool { return it.all() }) {
		return []Item{{}}
	}
	merged := mergeBy(items, tagsKey, func(to, it *Item) {
		if len(to.types) == 0 || len(it.types) == 0 {
			to.types = nil // any
			return
		}
		to.types = append(to.types, it.types...)
	})
	for i := range merged {
		if it := &merged[i]; len(it.types) > 1 {
			it.types = slices.Compact(slices.Sorted(slices.Values(it.types)))
		}
	}
	return mergeBy(merged, singleKey, func(to, it *Item) {
		to.tags = append(to.tags, it.tags...)
		to.any = true
	})
}

// mergeBy puts the items that have one key together, in place of the first of them,
// which it copies before. Those without a key stay as they are.
func mergeBy(items []Item, key func(*Item) string, put func(to, it *Item)) []Item {
	merged := make([]Item, 0, len(items))
	type place struct {
		at  int
		own bool // lists are nobody else's
	}
	places := make(map[string]place, len(items))
	for i := range items {
		k := key(&items[i])
		p, ok := places[k]
		if !ok || k == "" {
			places[k] = place{at: len(merged)}
			merged = append(merged, items[i])
			continue
		}
		to := &merged[p.at]
		if !p.own {
			to.types, to.tags = slices.Clone(to.types), slices.Clone(to.tags)
			places[k] = place{at: p.at, own: true}
		}
		put(to, &items[i])
	}
	return merged
}

// tagsKey tells sets of tags apart. It is never empty.
func tagsKey(it *Item) string {
	if len(it.tags) <= 1 {
		return "t" + strings.Join(it.tags, "")
	}
	tags := slices.Clone(it.tags)
	slices.Sort(tags)
	return "t" + strings.Join(tags, separator)
}

// singleKey tells the types of items of a single tag apart; it is empty for others.
// Types are sorted then, and may contain anything but U+0000.
func singleKey(it *Item) string {
	if len(it.tags) != 1 {
		return ""
	}
	return "y" + strings.Join(it.types, "\x00")
}
