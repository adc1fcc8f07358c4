package report

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	_ "embed" // the terms
)

// term is a word that readers may not know.
type term struct {
	Word, Means string
	stands      *regexp.Regexp
}

// terms are explained where they first stand on the page. A line of the file has the
// word, the pattern of what it stands for, and what it means.
var terms = sync.OnceValue(func() (list []term) {
	for line := range strings.Lines(termLines) {
		f := strings.Split(strings.TrimSpace(line), "\t")
		list = append(list, term{Word: f[0], Means: f[2], stands: regexp.MustCompile(`(^|[^\w-])(` + f[1] + `)($|[^\w-])`)})
	}
	return list
})

//go:embed assets/terms.txt
var termLines string

// explainer returns a function for the template that explains those terms in a text
// that stand in none before.
func explainer() func(of ...any) []term {
	left := slices.Clone(terms())
	return func(of ...any) []term {
		words := fmt.Sprintln(of...)
		stand := func(t term) bool { return t.stands.MatchString(words) }
		found := slices.DeleteFunc(slices.Clone(left), func(t term) bool { return !stand(t) })
		left = slices.DeleteFunc(left, stand)
		return found
	}
}

// String is what a chart says.
func (c Chart) String() string { return fmt.Sprintln(c.Caption, c.Tables) }
