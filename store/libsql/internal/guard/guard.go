// Package guard refuses values and statements that libSQL's client libraries
// would change silently. It also maps their messages to errors, because they
// have no result codes.
package guard

import (
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/varvedb/varve/store/driver"
)

// ErrBroken wraps an error after which a connection cannot be used. It is not
// database/sql's ErrBadConn, because then a prepared statement would be tried
// again, and the cause would be hidden.
var ErrBroken = errors.New("the connection is given up")

// IsBroken reports whether err wraps ErrBroken.
func IsBroken(err error) bool { return errors.Is(err, ErrBroken) }

// Argument refuses text that the library would change: go-libsql cuts it at
// NUL.
func Argument(v *sqldriver.NamedValue) error {
	switch value := v.Value.(type) {
	case int64, []byte:
		return nil
	case string:
		return Text(value)
	}
	return sqldriver.ErrSkip // the standard conversion
}

// Text refuses text that the library would change.
func Text(text string) error {
	switch {
	case strings.IndexByte(text, 0) >= 0:
		return fmt.Errorf("%w: libSQL takes no text with NUL; store it as a blob", driver.ErrUnsupported)
	case !utf8.ValidString(text):
		return fmt.Errorf("%w: text is not UTF-8; store it as a blob", driver.ErrUnsupported)
	}
	return nil
}

// Row refuses times. go-libsql converts text that looks like a date into a
// time, and database/sql would convert that into another text.
func Row(columns func() []string, row []sqldriver.Value) error {
	for i, value := range row {
		if _, isTime := value.(time.Time); isTime {
			return fmt.Errorf("column %q holds text that reads as a date, which libSQL's client does not give as it is: %w; select CAST(… AS BLOB)",
				columns()[i], driver.ErrUnsupported)
		}
	}
	return nil
}

// Statement returns the number of "?" placeholders in a statement. It refuses a
// text with more than one statement, because go-libsql would run only the first.
func Statement(text string) (placeholders int, err error) {
	ended := false
	for i := 0; i < len(text); {
		n := token(text[i:])
		switch c := text[i]; {
		case n > 1 && (c == '-' || c == '/'), isSpace(c):
		case c == ';':
			ended = ended || !isTrigger(text)
		case ended:
			return 0, fmt.Errorf("%w: more than one statement in %.60q", driver.ErrUnsupported, text)
		case c == '?':
			placeholders++
		}
		i += n
	}
	return placeholders, nil
}

// token returns the length of the comment, quoted name or string at the start
// of s, or 1 for anything else. A comment or quote without an end extends to
// the end of s.
func token(s string) int {
	switch c := s[0]; {
	case strings.HasPrefix(s, "--"):
		return through(s, 2, "\n")
	case strings.HasPrefix(s, "/*"):
		return through(s, 2, "*/")
	case c == '\'' || c == '"' || c == '`':
		return through(s, 1, string(c)) // a doubled quote is two quoted texts
	case c == '[':
		return through(s, 1, "]")
	}
	return 1
}

// through returns the length of s up to and including the next end, searched
// from an offset.
func through(s string, from int, end string) int {
	if i := strings.Index(s[from:], end); i >= 0 {
		return from + i + len(end)
	}
	return len(s)
}

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

// isTrigger reports whether a statement is a CREATE TRIGGER, which contains
// semicolons.
func isTrigger(text string) bool {
	words := strings.Fields(strings.ToUpper(text[:min(len(text), 80)]))
	if len(words) > 2 && (words[1] == "TEMP" || words[1] == "TEMPORARY") {
		words = words[1:]
	}
	return len(words) > 1 && strings.HasPrefix(strings.ToUpper(text), "CREATE") && words[1] == "TRIGGER"
}

// Reads reports whether a statement only reads. It reports false for statements
// that it cannot classify: a WITH whose tables have verbs as names, and a
// PRAGMA with an argument.
func Reads(text string) bool {
	depth, with := 0, false
	for i := 0; i < len(text); {
		n := token(text[i:])
		switch text[i] {
		case '(':
			depth++
		case ')':
			depth--
		}
		// The verb is the first word; after WITH it is the first verb outside
		// of parentheses.
		if depth > 0 || !isLetter(text[i]) {
			i += n
			continue
		}
		word := text[i : len(text)-len(strings.TrimLeftFunc(text[i:], isOfWord))]
		switch strings.ToUpper(word) {
		case "SELECT", "VALUES", "EXPLAIN":
			return true
		case "PRAGMA":
			return !with && !strings.ContainsAny(text, "=(")
		case "INSERT", "REPLACE", "UPDATE", "DELETE":
			return false
		case "WITH":
			with = true
		}
		if !with {
			return false
		}
		i += len(word)
	}
	return false
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func isOfWord(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }
