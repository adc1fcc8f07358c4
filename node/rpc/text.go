package rpc

import (
	"strings"
	"unicode"

	"github.com/varvedb/varve/store/query"
)

// parse reads the text of a query as Arkiv's SDKs send it. A nil expression matches all.
func parse(text string) (query.Expr, error) {
	text = strings.TrimSpace(text)
	switch text {
	case "", "1 = 1", "1=1":
		return nil, nil
	}
	expr, err := query.Parse(text)
	if err == nil || !strings.ContainsAny(text, `"`) {
		return expr, err
	}
	if quoted := requote(text); quoted != text {
		if expr, again := query.Parse(quoted); again == nil {
			return expr, nil
		}
	}
	return nil, err
}

// requote escapes what stands between the quotes of a text whose writer did not, as the
// SDKs do not: a quote ends a string when an operator, a bracket, a comma or the end of the
// text comes after it, or another string inside a list. What an SDK should have told apart
// from that cannot be told here.
func requote(text string) string {
	var b strings.Builder
	lists := 0 // brackets open
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '`':
			end := strings.IndexByte(text[i+1:], '`')
			if end < 0 {
				return text
			}
			b.WriteString(text[i : i+end+2])
			i += end + 1
		case '"':
			end := stringEnd(text, i+1, lists > 0)
			if end < 0 {
				return text
			}
			b.WriteByte('"')
			for _, c := range []byte(text[i+1 : end]) {
				if c == '"' || c == '\\' {
					b.WriteByte('\\')
				}
				b.WriteByte(c)
			}
			b.WriteByte('"')
			i = end
		default:
			if c == '(' {
				lists++
			} else if c == ')' {
				lists--
			}
			b.WriteByte(c)
		}
	}
	return b.String()
}

// stringEnd returns where the quote is that ends the string which begins at start, or -1.
func stringEnd(text string, start int, list bool) int {
	for i := start; i < len(text); i++ {
		if text[i] == '"' && endsString(text[i+1:], list) {
			return i
		}
	}
	return -1
}

// endsString tells whether what follows a quote says that it was the last of a string.
func endsString(rest string, list bool) bool {
	after := strings.TrimLeftFunc(rest, unicode.IsSpace)
	switch {
	case after == "" || after[0] == ')' || after[0] == ',':
		return true
	case strings.HasPrefix(after, "&&") || strings.HasPrefix(after, "||"):
		return true
	case list && after[0] == '"' && len(after) < len(rest):
		return true
	}
	for _, word := range []string{"and", "or"} {
		n := len(word)
		if len(after) < len(rest) && len(after) > n && strings.EqualFold(after[:n], word) && strings.IndexByte(" \t\r\n(!`", after[n]) >= 0 {
			return true
		}
	}
	return false
}
