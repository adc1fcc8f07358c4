package report

import (
	"slices"
	"strings"
)

// sentence ends words, if there are any.
func sentence(s string) string {
	if s == "" {
		return ""
	}
	return s + "."
}

// maxError is how much of an error is shown in a line; what follows is mostly the
// rest of a statement.
const maxError = 300

// oneLine makes an error fit into a line.
func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if runes := []rune(s); len(runes) > maxError {
		return string(runes[:maxError]) + " …"
	}
	return s
}

// nonempty are those words that are not empty, in the same array.
func nonempty(words ...string) []string {
	return slices.DeleteFunc(words, func(s string) bool { return s == "" })
}

// joinWords joins those words that are not empty.
func joinWords(separator string, words ...string) string {
	return strings.Join(nonempty(words...), separator)
}

// slug makes an anchor of words.
func slug(s string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(s)), "-")
}
