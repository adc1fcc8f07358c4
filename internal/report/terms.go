package report

import (
	"fmt"
	"regexp"
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

// explain puts the terms to the blocks in which they first stand, those of what is
// above all blocks there.
func (p *page) explain() {
	seen := map[string]bool{}
	first := func(text string) (found []term) {
		for _, t := range terms() {
			if !seen[t.Word] && t.stands.MatchString(text) {
				seen[t.Word] = true
				found = append(found, t)
			}
		}
		return found
	}
	p.Terms = first(fmt.Sprintln(p.Sentence, p.Facts, p.Ranking))
	for i := range p.Sections {
		for j := range p.Sections[i].Blocks {
			b := &p.Sections[i].Blocks[j]
			b.Terms = first(b.words())
		}
	}
}

// words are what a block says.
func (b *block) words() string {
	text := fmt.Sprintln(b.Title, b.Question, b.Notes, b.Tables)
	for _, c := range b.Charts {
		text += fmt.Sprintln(c.Caption, c.Tables)
	}
	return text
}
