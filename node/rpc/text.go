package rpc

import (
	"regexp"
	"strings"

	"github.com/varvedb/varve/store/query"
)

// parse parses the text of a query as Arkiv's SDKs send it. A nil expression
// matches all.
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

// requote escapes characters inside quoted strings, which the SDKs leave
// unescaped. A quote ends a string if an operator, a bracket, a comma or the
// end of the text follows, or, inside a list, another string. A value that
// contains such a sequence is ambiguous, and cannot be repaired here.
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
			ends := stringEnd
			if lists > 0 {
				ends = itemEnd
			}
			at := ends.FindStringIndex(text[i+1:])
			if at == nil {
				return text
			}
			end := i + 1 + at[0]
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

// space matches the white space of the query language: unicode.IsSpace.
const space = "[\\t-\\r\\x{85}\\p{Z}]"

// The text that may follow a closing quote; inside a list also another string.
var (
	stringEnd = regexp.MustCompile(`"(` + space + `*($|[),]|&&|\|\|)|` + space + `+(?i:and|or)(` + space + `|[(!` + "`" + `]))`)
	itemEnd   = regexp.MustCompile(stringEnd.String() + `|"` + space + `+"`)
)
