// Package catalogue has the names and questions of the experiments, which package lab measures and
// package report shows, and the loads that a first version must carry.
package catalogue

import (
	_ "embed" // catalogue.txt
	"slices"
	"strings"
)

// Entry is the text of an experiment.
type Entry struct {
	ID       string `json:"-"` // section and number, such as "A5"
	Title    string `json:"title"`
	Question string `json:"question"`
	Found    string `json:"-"` // what others published about it, on their machines; "" for nothing
}

//go:embed catalogue.txt
var text string

// All are the experiments in order. Each is a paragraph of catalogue.txt: its ID and title, its
// question, and what was published.
var All = func() (list []Entry) {
	for paragraph := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		lines := strings.Split(paragraph, "\n")
		e := Entry{Question: lines[1]}
		e.ID, e.Title, _ = strings.Cut(lines[0], " ")
		if len(lines) > 2 {
			e.Found = strings.TrimPrefix(lines[2], "Published: ")
		}
		list = append(list, e)
	}
	return list
}()

// Find returns the text of an experiment; of one that is not here it is the ID.
func Find(id string) Entry {
	if i := slices.IndexFunc(All, func(e Entry) bool { return e.ID == id }); i >= 0 {
		return All[i]
	}
	return Entry{ID: id, Title: id}
}

// FirstVersion are the loads of a first version, in rows and reads a second, on 621,000 entities.
var FirstVersion = [][2]float64{
	{10_000, 1_000}, {10_000, 5_000}, {10_000, 10_000},
	{25_000, 1_000}, {25_000, 5_000}, {25_000, 10_000},
	{50_000, 1_000}, {50_000, 5_000}, {50_000, 10_000},
}
