package query

import (
	"cmp"
	"slices"
	"unicode/utf8"
)

// runeSet is a set of characters: those in the ranges, or with inverted all
// others. The ranges are sorted and neither overlap nor touch.
type runeSet struct {
	ranges   []runeRange
	inverted bool
}

// runeRange has the characters from lo to hi, both included.
type runeRange struct{ lo, hi rune }

// parseSet parses a set after its "[" and returns the text after its "]". It
// returns false if the set does not end, or is empty.
func parseSet(s string) (set runeSet, rest string, ok bool) {
	next := func() (c rune) {
		c, n := utf8.DecodeRuneInString(s)
		s = s[n:]
		return c
	}
	if s != "" && s[0] == '^' {
		set.inverted = true
		next()
	}
	var prior rune = -1 // may begin a range
	for first := true; ; first = false {
		if s == "" {
			return set, "", false
		}
		c := next()
		switch {
		case c == ']' && first:
			// A literal; SQLite does not let it begin a range.
			set.ranges = append(set.ranges, runeRange{c, c})
		case c == ']':
			set.normalize()
			return set, s, !set.empty()
		case c == '-' && prior >= 0 && s != "" && s[0] != ']':
			// The beginning is already in the set as a literal, which matters
			// when the range is reversed.
			if end := next(); prior <= end {
				set.ranges = append(set.ranges, runeRange{prior, end})
			}
			prior = -1
		default:
			set.ranges = append(set.ranges, runeRange{c, c})
			prior = c
		}
	}
}

// normalize sorts the ranges and joins ranges that overlap or touch.
func (s *runeSet) normalize() {
	slices.SortFunc(s.ranges, func(a, b runeRange) int { return cmp.Compare(a.lo, b.lo) })
	joined := s.ranges[:0]
	for _, r := range s.ranges {
		if k := len(joined) - 1; k >= 0 && r.lo <= after(joined[k].hi) {
			joined[k].hi = max(joined[k].hi, r.hi)
			continue
		}
		joined = append(joined, r)
	}
	s.ranges = joined
}

// empty reports whether a normalized set contains no character: that is an
// inverted set of everything.
func (s *runeSet) empty() bool {
	everything := runeRange{0, utf8.MaxRune}
	return s.inverted && len(s.ranges) == 1 && s.ranges[0] == everything
}

// item converts the set, to a literal if it has only one character. "[*]" is
// how a literal star is written, and literals give longer prefixes.
func (s runeSet) item() globItem {
	if !s.inverted && len(s.ranges) == 1 && s.ranges[0].lo == s.ranges[0].hi {
		return globItem{kind: globRune, char: s.ranges[0].lo}
	}
	return globItem{kind: globSet, set: s}
}

func (s *runeSet) contains(c rune) bool {
	_, found := slices.BinarySearchFunc(s.ranges, c, func(r runeRange, c rune) int {
		switch {
		case c < r.lo:
			return 1
		case c > r.hi:
			return -1
		}
		return 0
	})
	return found != s.inverted
}

// after returns the next code point after c, skipping surrogates. After the
// last one it returns utf8.MaxRune+1.
func after(c rune) rune {
	const lastBeforeSurrogates, firstAfterSurrogates = 0xD7FF, 0xE000
	if c == lastBeforeSurrogates {
		return firstAfterSurrogates
	}
	return c + 1
}
