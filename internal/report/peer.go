package report

import (
	"slices"

	"golang.org/x/perf/benchfmt"
)

// others are the figures of other programs that belong beside a table, a column for each.
type others struct {
	lines []*benchfmt.Result
	names []string
}

// beside returns the figures of others on the experiments of a table with a column for each
// engine.
func (s *Set) beside(sel *selection) others {
	var o others
	if !slices.ContainsFunc(sel.view.Columns, func(c Column) bool { return c.Across == "engine" }) {
		return o
	}
	for _, p := range s.Peers {
		fits := slices.ContainsFunc(sel.lines, func(l *benchfmt.Result) bool {
			return l.GetConfig("experiment") == p.GetConfig("experiment") && matches(p, l)
		})
		if fits {
			o.lines = append(o.lines, p)
			o.names = appendNew(o.names, Key(p, "peer"))
		}
	}
	return o
}

// matches tells whether a figure of another program is of the setting of a line. What its name
// leaves out may be anything.
func matches(peer, line *benchfmt.Result) bool {
	return !slices.ContainsFunc(nameKeys(peer), func(pair [2]string) bool {
		return pair[0] != "peer" && Key(line, pair[0]) != pair[1]
	})
}

// with are the names that have a figure in the unit.
func (o others) with(unit string) []string {
	return slices.DeleteFunc(slices.Clone(o.names), func(name string) bool {
		return !slices.ContainsFunc(o.lines, func(p *benchfmt.Result) bool {
			_, ok := p.Value(unit)
			return ok && Key(p, "peer") == name
		})
	})
}

// heads are the columns behind the last one of a unit.
func (o others) heads(c column) (list []string) {
	if !c.last {
		return nil
	}
	for _, name := range o.with(c.unit) {
		list = append(list, name+", "+c.unit)
	}
	return list
}

func (o others) cells(lines []*benchfmt.Result, c column) (list []Cell) {
	if !c.last {
		return nil
	}
	for _, name := range o.with(c.unit) {
		list = append(list, figure(o.lines, column{unit: c.unit, of: func(p *benchfmt.Result) bool {
			return Key(p, "peer") == name && slices.ContainsFunc(lines, func(l *benchfmt.Result) bool {
				_, measured := l.Value(c.unit)
				return measured && matches(p, l)
			})
		}}).cell())
	}
	return list
}
