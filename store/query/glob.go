package query

import "unicode/utf8"

// Pattern is a compiled glob pattern with the semantics of SQLite's GLOB over
// code points:
//
//	?       any one character
//	*       any run of characters, also none
//	[abc]   one of a set; [a-z] one of a range, ends included
//	[^abc]  one character that is not of the set
//
// A "]" that comes first in a set, after the "^" if there is one, is literal;
// so is a "-" that comes first, last or right after a range. There is no
// escape: "[*]" matches a star. A pattern with a set that does not end matches
// nothing. Unlike SQLite, which stops reading at it, U+0000 is a character
// like others.
type Pattern struct {
	items []globItem
	never bool // matches nothing
}

type globKind uint8

const (
	globRune globKind = iota // one given character
	globAny                  // any one character
	globSet                  // one of a set
	globStar                 // any run of characters
)

type globItem struct {
	kind globKind
	char rune    // of globRune
	set  runeSet // of globSet
}

// CompileGlob compiles a pattern, which should be UTF-8. Every pattern is
// valid; some match nothing.
func CompileGlob(pattern string) Pattern {
	var p Pattern
	for pattern != "" {
		c, n := utf8.DecodeRuneInString(pattern)
		pattern = pattern[n:]
		switch c {
		case '*':
			if k := len(p.items); k == 0 || p.items[k-1].kind != globStar {
				p.items = append(p.items, globItem{kind: globStar})
			}
		case '?':
			p.items = append(p.items, globItem{kind: globAny})
		case '[':
			set, rest, ok := parseSet(pattern)
			if !ok {
				return Pattern{never: true}
			}
			p.items = append(p.items, set.item())
			pattern = rest
		default:
			p.items = append(p.items, globItem{kind: globRune, char: c})
		}
	}
	return p
}

// Match reports whether the whole of s matches. In the worst case it takes time
// proportional to the product of both lengths: when an item fails, only the
// last star is tried again, because an earlier one could do no better.
func (p Pattern) Match(s string) bool {
	if p.never {
		return false
	}
	item, pos := 0, 0       // next of the pattern, next of s
	star, starPos := -1, -1 // last star met, where its run ends so far
	for pos < len(s) {
		if item < len(p.items) && p.items[item].kind == globStar {
			star, starPos = item, pos
			item++
			continue
		}
		c, n := utf8.DecodeRuneInString(s[pos:])
		if item < len(p.items) && p.items[item].matches(c) {
			item++
			pos += n
			continue
		}
		if star < 0 {
			return false
		}
		_, n = utf8.DecodeRuneInString(s[starPos:])
		starPos += n
		item, pos = star+1, starPos
	}
	for item < len(p.items) && p.items[item].kind == globStar {
		item++
	}
	return item == len(p.items)
}

// matches reports whether a character fits an item other than a star.
func (i *globItem) matches(c rune) bool {
	switch i.kind {
	case globRune:
		return c == i.char
	case globAny:
		return true
	}
	return i.set.contains(c)
}
