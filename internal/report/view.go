package report

import "strings"

// View says how a table is made of lines: the rows and columns into which they are
// projected, in the words of golang.org/x/perf/benchproc/syntax.
type View struct {
	Title   string
	Filter  string // lines that the table is of; "" leaves it to the columns
	Largest string // key of a size, such as "scale": only the largest is shown
	Rows    string // projection
	Columns []Column
	Compare *Compare // two settings that are compared below the table
	Fit     bool     // a regression over blocks instead of figures
	Short   bool     // a screen has room for it: without the sittings of each figure
	Ranked  bool     // the rows compete: the best of each column is marked, and the row that is best most often is named below
}

// Column is one figure of each row, or one of each value of a key.
type Column struct {
	Name   string // of the column; the unit when empty
	Unit   string
	Filter string // its lines, within the view's
	Across string // key that has a column for each of its values
}

// Columns are columns of lines by their units, or by "unit=name".
func Columns(filter string, units ...string) (list []Column) {
	for _, u := range units {
		unit, name, named := strings.Cut(u, "=")
		if !named {
			name = strings.ReplaceAll(unit, "-", " ")
		}
		list = append(list, Column{Unit: unit, Name: name, Filter: filter})
	}
	return list
}

// Across are columns for each value of a key, by their units, or by "unit=name".
func Across(key string, units ...string) (list []Column) {
	for _, u := range units {
		unit, name, _ := strings.Cut(u, "=")
		list = append(list, Column{Unit: unit, Name: name, Across: key})
	}
	return list
}

// Table is a view of a set.
type Table struct {
	Title string   `json:"title,omitempty"`
	Unit  string   `json:"unit,omitempty"` // of all columns; "" when their heads tell it
	Heads []string `json:"heads"`          // keys of the rows, then the columns
	Keys  int      `json:"keys"`           // how many of the heads are keys
	Rows  [][]Cell `json:"rows"`
	Note  string   `json:"note,omitempty"` // what all lines have in common, and of how many sittings they are

	Better []int `json:"-"` // of each column: 1 where more is better, -1 where less is, 0 if unknown

	Under *Table `json:"under,omitempty"` // a comparison
}

// Compare asks how much a figure changes from one setting to others.
type Compare struct {
	Key  string // such as "indexes"
	From string
	To   []string
	Unit string
}
