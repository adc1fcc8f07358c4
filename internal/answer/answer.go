// Package answer says what a result set answers to the five questions that the lab is for: a
// sentence each, by a fixed template, above the tables of package report. It also walks the decision
// tree of Arkiv's engineers (SQLite, libSQL, Postgres, DuckDB) and says go or no-go to V1: there a
// criterion passes or fails only where at least three measurements have their whole range on one
// side of the limit; else it is unknown.
package answer

import (
	"fmt"
	"io"

	"github.com/varvedb/varve/internal/report"
)

// Answers is what a result set says.
type Answers struct {
	Questions  []report.Answer `json:"questions"` // the five
	Walks      []Walk          `json:"walks"`
	Candidates []Candidate     `json:"candidates"`
}

// candidate is an engine with a layout.
type candidate struct {
	Engine string `json:"engine"`
	Layout string `json:"layout"`
}

func (c candidate) String() string { return c.Engine + " " + c.Layout }

// Evaluate answers from a result set, and gives each of the questions of its page its sentence.
func Evaluate(set *report.Set, questions []report.Answer) (*Answers, error) {
	a := &Answers{Questions: questions}
	for i := range questions {
		q, err := &questions[i], error(nil)
		if q.Sentence, err = say(set, q.ID); err != nil {
			return nil, fmt.Errorf("question %s: %w", q.ID, err)
		}
	}
	return a, a.walk(set)
}

// WriteText writes the answers for readers.
func (a *Answers) WriteText(w io.Writer) error {
	for i := range a.Questions {
		q := &a.Questions[i]
		fmt.Fprintf(w, "%d. %s\n%s\n\n", i+1, q.Title, q.Sentence)
		if err := report.WriteTables(w, q.Tables); err != nil {
			return err
		}
	}
	return a.writeTree(w)
}
