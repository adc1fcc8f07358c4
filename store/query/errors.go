package query

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

var (
	// ErrSyntax: the text is not a query. Every error of Parse is a *SyntaxError that wraps it.
	ErrSyntax = errors.New("query syntax error")
	// ErrInvalid: the tree is not one that Parse could have made. Every error of Check wraps it.
	ErrInvalid = errors.New("invalid query")
)

// SyntaxError is a fault in the text of a query, with its place.
type SyntaxError struct {
	Line     int    // of the first character at fault, from 1
	Column   int    // of it within its line, in code points, from 1
	Message  string // the fault, such as: unexpected ")"
	Expected string // what would do instead; empty when Message says it all
}

// Error returns position, message and expectation in one line.
func (e *SyntaxError) Error() string {
	if e.Expected == "" {
		return fmt.Sprintf("query %d:%d: %s", e.Line, e.Column, e.Message)
	}
	return fmt.Sprintf("query %d:%d: %s, expected %s", e.Line, e.Column, e.Message, e.Expected)
}

// Unwrap returns ErrSyntax.
func (e *SyntaxError) Unwrap() error { return ErrSyntax }

// syntaxError makes an error at a byte offset. Line and column are computed
// only here, so that parsing does not count lines. The text before the offset
// must be UTF-8.
func syntaxError(src string, offset int, message, expected string) *SyntaxError {
	before := src[:offset]
	start := strings.LastIndexByte(before, '\n') + 1
	return &SyntaxError{
		Line:     1 + strings.Count(before, "\n"),
		Column:   1 + utf8.RuneCountInString(before[start:]),
		Message:  message,
		Expected: expected,
	}
}

// clip shortens text for a message.
func clip(s string) string {
	const most = 40
	n := 0
	for i := range s {
		if n == most {
			return s[:i] + "…"
		}
		n++
	}
	return s
}

// The limits of a query. Parse and Check enforce the same limits, so that each
// accepts what the other does. Layouts rely on them: compiling a tree needs no
// more stack, memory or bind parameters than they allow.
const (
	// MaxLength bounds a query in bytes, both the text given to Parse and the
	// tree's printed form.
	MaxLength = 64 << 10

	// MaxDepth bounds the height of a tree, a single comparison being 1, and
	// the nesting of parentheses and negations in the text.
	MaxDepth = 200

	// MaxNodes bounds the nodes of a tree. The values of a list are not nodes.
	MaxNodes = 10_000

	// MaxList bounds the values of one list.
	MaxList = 10_000

	// MaxPattern bounds a glob pattern in bytes. SQLite refuses patterns above
	// 50,000 bytes, and RE2 those whose program outgrows its memory.
	MaxPattern = 4 << 10
)
