package report

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchproc"
)

// selection is a view that was applied to a set.
type selection struct {
	view    View
	lines   []*benchfmt.Result
	rows    *benchproc.Projection
	fields  []*benchproc.Field
	columns []column
}

// choose applies a view.
func (s *Set) choose(v View) (*selection, error) {
	var parser benchproc.ProjectionParser
	filter, err := newFilter(v.Filter)
	if err != nil {
		return nil, err
	}
	sel := &selection{view: v}
	if sel.rows, err = parser.Parse(v.Rows, filter); err != nil {
		return nil, err
	}
	for _, c := range v.Columns {
		if c.Across != "" { // so that .fullname is without it
			if _, err := parser.Parse("/"+c.Across, filter); err != nil {
				return nil, err
			}
		}
	}
	sel.fields = sel.rows.FlattenedFields()
	source := s.Lines
	if v.Fit {
		source = s.Series
	}
	if sel.lines, err = matching(source, filter); err != nil {
		return nil, err
	}
	sel.lines = largest(sel.lines, v.Largest)
	var shown []*benchfmt.Result // lines that are in some column
	for _, c := range v.Columns {
		narrow, err := newFilter(c.Filter)
		if err != nil {
			return nil, err
		}
		lines, err := matching(sel.lines, narrow)
		if err != nil {
			return nil, err
		}
		lines = slices.DeleteFunc(lines, func(l *benchfmt.Result) bool { _, ok := l.Value(c.Unit); return !ok })
		shown = append(shown, lines...)
		sel.columns = append(sel.columns, columnsOf(c, lines)...)
		if c.Across == "engine" {
			sel.columns = append(sel.columns, s.peerColumns(lines, c.Unit)...)
		}
	}
	if !v.Fit {
		sel.lines = slices.DeleteFunc(sel.lines, func(l *benchfmt.Result) bool { return !slices.Contains(shown, l) })
	}
	return sel, nil
}

// newFilter parses a filter. Lines of one kind of operation are left out unless it asks for kinds.
func newFilter(filter string) (*benchproc.Filter, error) {
	if filter == "" {
		filter = "*"
	}
	if !strings.Contains(filter, "/kind") {
		filter = "(" + filter + `) /kind:/^$/`
	}
	return benchproc.NewFilter(filter)
}

func matching(lines []*benchfmt.Result, filter *benchproc.Filter) (list []*benchfmt.Result, err error) {
	for _, l := range lines {
		m, err := filter.Match(l)
		if err != nil {
			return nil, err
		}
		if m.Any() {
			list = append(list, l)
		}
	}
	return list, nil
}

// largest keeps the lines with the largest value of a key.
func largest(lines []*benchfmt.Result, key string) []*benchfmt.Result {
	if key == "" {
		return lines
	}
	size := func(l *benchfmt.Result) float64 { v, _ := strconv.ParseFloat(Key(l, key), 64); return v }
	var most float64
	for _, l := range lines {
		most = max(most, size(l))
	}
	return slices.DeleteFunc(lines, func(l *benchfmt.Result) bool { return size(l) < most })
}

// columnsOf are the columns for the values that the lines have of the key.
func columnsOf(c Column, lines []*benchfmt.Result) (list []column) {
	name := cmp.Or(c.Name, c.Unit)
	if c.Across == "" {
		return []column{{head: name, unit: c.Unit, of: func(l *benchfmt.Result) bool { return slices.Contains(lines, l) }}}
	}
	values := slices.DeleteFunc(inNames(lines, c.Across), func(v string) bool { return v == "" })
	if c.Across != "engine" {
		slices.SortFunc(values, byNumber)
	}
	for _, value := range values {
		v := value
		of := func(l *benchfmt.Result) bool { return Key(l, c.Across) == value && slices.Contains(lines, l) }
		if c.Across == "scale" {
			v += "x"
		}
		list = append(list, column{head: v + ", " + name, unit: c.Unit, of: of})
	}
	return list
}

// byNumber orders numbers as such, and words behind them.
func byNumber(a, b string) int {
	number := func(text string) float64 {
		if v, err := strconv.ParseFloat(text, 64); err == nil {
			return v
		}
		return math.Inf(1)
	}
	return cmp.Or(cmp.Compare(number(a), number(b)), strings.Compare(a, b))
}

// table begins a table with the keys of the rows.
func (sel *selection) table(note string) *Table {
	t := &Table{Title: sel.view.Title, Note: note, Keys: len(sel.fields)}
	for _, f := range sel.fields {
		t.Heads = append(t.Heads, strings.TrimPrefix(f.Name, "/"))
	}
	return t
}

// row is one of a table: its keys, and the lines that they project to.
type row struct {
	key   []string
	lines []*benchfmt.Result
}

// group puts the lines into their rows, in order.
func (sel *selection) group() (list []row) {
	var found []benchproc.Key
	lines := make(map[benchproc.Key][]*benchfmt.Result)
	for _, l := range sel.lines {
		k := sel.rows.Project(l)
		if lines[k] == nil {
			found = append(found, k)
		}
		lines[k] = append(lines[k], l)
	}
	benchproc.SortKeys(found)
	for _, k := range found {
		key := make([]string, len(sel.fields))
		for i, f := range sel.fields {
			key[i] = k.Get(f)
		}
		for _, part := range byHost(lines[k]) {
			list = append(list, row{key, part})
		}
	}
	return list
}

// byHost takes lines apart by their hosts where several hosts have measured the same, and one of them
// often enough to be judged: figures of two hosts have no median.
func byHost(lines []*benchfmt.Result) (parts [][]*benchfmt.Result) {
	var hosts []string
	of, runs := make(map[string][]*benchfmt.Result), make(map[string]map[string]int) // runs of a name on each host
	for _, l := range lines {
		host, name := l.GetConfig("host"), string(l.Name)
		hosts, of[host] = appendNew(hosts, host), append(of[host], l)
		if runs[name] == nil {
			runs[name] = make(map[string]int)
		}
		runs[name][host]++
	}
	apart := false
	for _, on := range runs {
		for _, n := range on {
			apart = apart || len(on) > 1 && n >= Judged
		}
	}
	if !apart {
		return [][]*benchfmt.Result{lines}
	}
	for _, h := range hosts {
		parts = append(parts, of[h])
	}
	return parts
}

// Figure returns the figure in a unit of all lines that a filter matches, nil when there is none.
func (s *Set) Figure(filter, unit string) (*Figure, error) {
	f, err := newFilter(filter)
	if err != nil {
		return nil, err
	}
	lines, err := matching(s.Lines, f)
	return figure(lines, column{unit: unit, of: func(*benchfmt.Result) bool { return true }}), err
}

// note says what the lines have in common beside the rows and columns. Keys that differ and
// are in neither are named: such a table mixes settings.
func (sel *selection) note() string {
	values := make(map[string][]string)
	var order, parts []string
	for _, l := range sel.lines {
		for _, pair := range nameKeys(l) {
			order, values[pair[0]] = appendNew(order, pair[0]), appendNew(values[pair[0]], pair[1])
		}
	}
	for _, key := range order {
		if list := values[key]; len(list) == 1 && !sel.projected(key) {
			parts = append(parts, key+" "+list[0])
		} else if len(list) > 1 && !sel.projected(key) {
			parts = append(parts, "mixes "+key+" "+strings.Join(list, " and "))
		}
	}
	switch n := len(sittingsOf(sel.lines)); n {
	case 0:
	case 1:
		parts = append(parts, "one sitting")
	default:
		parts = append(parts, strconv.Itoa(n)+" sittings")
	}
	return strings.Join(parts, ", ")
}

// projected tells whether a key tells rows or columns apart.
func (sel *selection) projected(key string) bool {
	for _, c := range sel.view.Columns {
		if c.Across == key || strings.Contains(c.Filter, "/"+key+":") {
			return true
		}
	}
	return slices.ContainsFunc(sel.fields, func(f *benchproc.Field) bool { return f.Name == "/"+key })
}
