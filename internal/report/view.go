package report

import "strings"

// View specifies a table: how lines are projected into rows and columns, in the
// syntax of golang.org/x/perf/benchproc/syntax.
type View struct {
	Title   string
	Filter  string // selects the table's lines; "" leaves that to the columns
	Largest string // key of a size, such as "scale": only the largest is shown
	Rows    string // projection
	Columns []Column
	Compare *Compare // two settings that are compared below the table
	Fit     bool     // a regression over blocks instead of figures
	Short   bool     // for a screen: without the number of sittings of each figure
	Ranked  bool     // mark the best row in each column, and name the row with the most marks below
}

// Column is one figure of each row, or, with a key, one for each value of the
// key.
type Column struct {
	Name   string // of the column; the unit when empty
	Unit   string
	Filter string // selects its lines among the view's
	Across string // a key, for a separate column for each of its values
}

// Columns returns columns by their units, each as "unit" or "unit=name".
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

// Across returns columns by their units, repeated for each value of a key, each
// as "unit" or "unit=name".
func Across(key string, units ...string) (list []Column) {
	for _, u := range units {
		unit, name, _ := strings.Cut(u, "=")
		list = append(list, Column{Unit: unit, Name: name, Across: key})
	}
	return list
}

// Table is the result of a view.
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

// Compare specifies a comparison of one setting with others.
type Compare struct {
	Key  string // such as "indexes"
	From string
	To   []string
	Unit string
}
