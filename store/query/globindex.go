package query

import (
	"strings"
	"unicode/utf8"
)

// Properties of patterns for indexes and other matchers.

// Prefix returns the literal prefix of every match, and whether the pattern is
// exactly that prefix and a star.
func (p Pattern) Prefix() (prefix string, onlyStar bool) {
	var b strings.Builder
	for i, item := range p.items {
		if item.kind != globRune {
			return b.String(), item.kind == globStar && i == len(p.items)-1
		}
		b.WriteRune(item.char)
	}
	return b.String(), false
}

// Literal returns the only string that the pattern matches, and false when it
// has a wildcard or matches nothing.
func (p Pattern) Literal() (string, bool) {
	for _, item := range p.items {
		if item.kind != globRune {
			return "", false
		}
	}
	prefix, _ := p.Prefix()
	return prefix, !p.never
}

// PrefixRange returns the range of strings that begin with prefix, which should be UTF-8: s does
// when lo ≤ s and s < hi by bytes, hi == "" meaning no upper bound. Both bounds are UTF-8.
func PrefixRange(prefix string) (lo, hi string) {
	return prefix, successor(prefix)
}

// successor returns the smallest UTF-8 string above all strings that begin with
// prefix, or "" when there is none. It raises the last code point and not the
// last byte, because engines refuse text that is not UTF-8.
func successor(prefix string) string {
	for prefix != "" {
		c, n := utf8.DecodeLastRuneInString(prefix)
		prefix = prefix[:len(prefix)-n]
		if c < utf8.MaxRune {
			return prefix + string(after(c))
		}
	}
	return ""
}

// Regexp returns a regular expression that matches the same strings, newlines
// included, and false when the pattern matches nothing. It uses only syntax
// that RE2 (DuckDB), Go and PostgreSQL's advanced expressions interpret alike:
// it begins with (?s), is anchored with ^ and $, escapes punctuation with a
// backslash, and writes every other character literally.
func (p Pattern) Regexp() (expr string, ok bool) {
	if p.never {
		return "", false
	}
	var b strings.Builder
	b.WriteString("(?s)^")
	for _, item := range p.items {
		switch item.kind {
		case globRune:
			writeEscaped(&b, item.char)
		case globAny:
			b.WriteByte('.')
		case globStar:
			b.WriteString(".*")
		case globSet:
			item.set.writeTo(&b)
		}
	}
	b.WriteByte('$')
	return b.String(), true
}

func (s *runeSet) writeTo(b *strings.Builder) {
	b.WriteByte('[')
	if s.inverted {
		b.WriteByte('^')
	}
	for _, r := range s.ranges {
		writeEscaped(b, r.lo)
		if r.hi > r.lo {
			b.WriteByte('-')
			writeEscaped(b, r.hi)
		}
	}
	b.WriteByte(']')
}

// writeEscaped writes a character, escaped if it has a meaning in a regular
// expression or a set.
func writeEscaped(b *strings.Builder, c rune) {
	if strings.ContainsRune(`\.+*?()|[]{}^$-`, c) {
		b.WriteByte('\\')
	}
	b.WriteRune(c)
}
