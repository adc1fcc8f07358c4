package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/perf/benchproc"
)

// selection is the result of applying a view to a set.
type selection struct {
	view    View
	lines   Lines
	rows    *benchproc.Projection
	fields  []*benchproc.Field
	columns []column
	about   []string // how other programs were run
	with    *reference
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
	if sel.lines, err = source.matching(v.Filter); err != nil {
		return nil, err
	}
	sel.lines = largest(sel.lines, v.Largest)
	var shown Lines // lines that are in some column
	for _, c := range v.Columns {
		lines, err := sel.lines.matching(c.Filter)
		if err != nil {
			return nil, err
		}
		lines = lines.having(c.Unit)
		shown = append(shown, lines...)
		sel.columns = append(sel.columns, columnsOf(c, lines)...)
		if c.Across == "engine" {
			columns, about := s.peerColumns(lines, c.Unit)
			sel.columns = append(sel.columns, columns...)
			for _, text := range about {
				sel.about = appendNew(sel.about, text)
			}
		}
	}
	if !v.Fit {
		sel.lines = sel.lines.where(func(l *Line) bool { return slices.Contains(shown, l) })
	}
	if !v.Fit && (sel.projected("engine") || sel.projected("layout")) {
		sel.with = newReference(s.Lines, sel.lines)
	}
	return sel, nil
}

// largest keeps the lines with the largest value of a key.
func largest(lines Lines, key string) Lines {
	if key == "" {
		return lines
	}
	size := func(l *Line) float64 { v, _ := strconv.ParseFloat(Key(l, key), 64); return v }
	var most float64
	for _, l := range lines {
		most = max(most, size(l))
	}
	return lines.where(func(l *Line) bool { return size(l) >= most })
}

// columnsOf returns the columns for the values that the lines have of the key.
func columnsOf(c Column, lines Lines) (list []column) {
	name := cmp.Or(c.Name, c.Unit)
	switch {
	case len(lines) == 0: // a column of nothing is left out
		return nil
	case c.Across == "":
		return []column{{head: name, unit: c.Unit, of: func(l *Line) bool { return slices.Contains(lines, l) }}}
	}
	values := slices.DeleteFunc(inNames(lines, c.Across), func(v string) bool { return v == "" })
	if c.Across != "engine" {
		slices.SortFunc(values, byNumber)
	}
	for _, value := range values {
		v := value
		of := func(l *Line) bool { return Key(l, c.Across) == value && slices.Contains(lines, l) }
		if c.Across == "scale" {
			v += "x"
		}
		list = append(list, column{head: v + ", " + name, unit: c.Unit, of: of})
	}
	return list
}

// byNumber orders numbers numerically, before words.
func byNumber(a, b string) int {
	number := func(text string) float64 {
		if v, err := strconv.ParseFloat(text, 64); err == nil {
			return v
		}
		return math.Inf(1)
	}
	return cmp.Or(cmp.Compare(number(a), number(b)), strings.Compare(a, b))
}

// table starts a table with the keys of the rows.
func (sel *selection) table(note string) *Table {
	t := &Table{Title: sel.view.Title, Note: note, Keys: len(sel.fields)}
	for _, f := range sel.fields {
		t.Heads = append(t.Heads, strings.TrimPrefix(f.Name, "/"))
	}
	return t
}

// row is a row of a table: its keys, and its lines.
type row struct {
	key   []string
	lines Lines
}

// group divides the lines into rows, in order.
func (sel *selection) group() (list []row) {
	var found []benchproc.Key
	lines := make(map[benchproc.Key]Lines)
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
		parts := []Lines{lines[k]}
		if sel.mixesHosts(lines[k]) {
			parts = byHost(lines[k])
		}
		for _, part := range parts {
			list = append(list, row{key, part})
		}
	}
	return list
}

// mixesHosts reports whether several hosts measured the same thing without the
// reference. Then there is no median, because absolute figures of different
// hosts are not comparable.
func (sel *selection) mixesHosts(lines Lines) bool {
	host := make(map[string]string) // of each setting
	for _, l := range lines {
		name, is := setting(l), l.GetConfig("host")
		if was, has := host[name]; has && was != is && (sel.with == nil || !sel.with.sides[name]) {
			return true
		}
		host[name] = is
	}
	return false
}

// Figure returns the figure in a unit of the lines that a filter matches; nil
// when there is none. The lines must be of one setting, because different
// sizes, experiments or settings have no common median.
func (s *Set) Figure(filter, unit string) (*Figure, error) {
	lines, err := s.Lines.matching(filter)
	lines = lines.having(unit)
	for _, l := range lines {
		if setting(l) != setting(lines[0]) {
			return nil, fmt.Errorf("mixes %s and %s", setting(lines[0]), setting(l))
		}
	}
	return figure(lines, column{unit: unit}), err
}

// OnHosts returns a filter for each host of the lines that a filter matches; a
// single one if the lines name no host.
func (s *Set) OnHosts(filter string) (filters []string) {
	lines, _ := s.Lines.matching(filter) // a filter of names matches whole lines
	hosts := distinct(lines, "host")
	if len(hosts) < 2 {
		return []string{filter}
	}
	for _, host := range hosts {
		filters = append(filters, fmt.Sprintf("%s host:%q", filter, host))
	}
	return filters
}

// Failed counts the killed or failed runs that a filter matches. If an error
// does not say which run a process was in, it counts the runs that the sitting
// has in another repeat and not in that one.
func (s *Set) Failed(filter string) (n int) {
	measured, _ := s.Lines.matching(filter)
	matched, _ := s.Excluded.matching(filter)
	for _, l := range s.Excluded.where(failed) {
		same := measured.where(func(m *Line) bool {
			return Key(m, "engine") == Key(l, "engine") && sittingOf(m) == sittingOf(l) && m.GetConfig("experiment") == l.GetConfig("experiment")
		})
		process := string(l.Name.Base()) == "Run" && len(same) > 0 && len(same.with("repeat", l.GetConfig("repeat"))) == 0
		if process || slices.Contains(matched, l) {
			n++
		}
	}
	return n
}

// sharedSettings lists the settings that all lines share and that are not in
// rows and columns. It also names the keys that vary without being in either:
// such a table mixes settings.
func (sel *selection) sharedSettings() string {
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
	return strings.Join(parts, ", ")
}

// projected reports whether rows or columns are distinguished by a key.
func (sel *selection) projected(key string) bool {
	for _, c := range sel.view.Columns {
		if c.Across == key || strings.Contains(c.Filter, "/"+key+":") {
			return true
		}
	}
	return slices.ContainsFunc(sel.fields, func(f *benchproc.Field) bool { return f.Name == "/"+key })
}
