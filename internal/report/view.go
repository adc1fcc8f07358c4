package report

// View says how a table is made of lines: the rows and columns into which they are
// projected, in the words of golang.org/x/perf/benchproc/syntax.
type View struct {
	Title   string
	Filter  string // lines that the table is of; "" leaves it to the columns
	Largest string // key of a size, such as "scale", of which only the largest is shown
	Rows    string // projection
	Columns []Column
	Compare *Compare // two settings that are compared below the table
	Fit     bool     // a regression over blocks instead of figures
	Ranked  bool     // the rows compete: the best of each column is marked, and the row that is best most often is named below
}

// Column is one figure of each row, or one of each value of a key.
type Column struct {
	Name   string // of the column; the unit when empty
	Unit   string
	Filter string // lines that it is of, beside the view's
	Across string // key that has a column for each of its values
}

// Table is what a view shows of a set.
type Table struct {
	Title string   `json:"title,omitempty"`
	Unit  string   `json:"unit,omitempty"` // of all columns; "" when their heads tell it
	Heads []string `json:"heads"`          // keys of the rows, then the columns
	Keys  int      `json:"keys"`           // how many of the heads are keys
	Rows  [][]Cell `json:"rows"`
	Note  string   `json:"note,omitempty"` // what all lines have in common, and of how many sittings they are

	Under *Table `json:"under,omitempty"` // a comparison
}

// Compare asks how much a figure changes from one setting to others.
type Compare struct {
	Key  string // such as "indexes"
	From string
	To   []string
	Unit string
}
