package report

import (
	"slices"

	"golang.org/x/perf/benchfmt"
)

// column is a Column, for one value of the key that it goes across.
type column struct {
	head, unit string
	of         func(*benchfmt.Result) bool
	peer       string // in place of that: another program, whose figure it is
}

// figure is what lines say in a column, or what another program does of their settings; nil for nothing.
func (s *Set) figure(lines []*benchfmt.Result, c column) *Figure {
	if c.peer == "" {
		return figure(lines, c)
	}
	measured := slices.DeleteFunc(slices.Clone(lines), func(l *benchfmt.Result) bool { _, ok := l.Value(c.unit); return !ok })
	return figure(s.beside(measured), column{unit: c.unit, of: func(p *benchfmt.Result) bool { return Key(p, "peer") == c.peer }})
}

// figure is what lines say in a column, nil for nothing.
func figure(lines []*benchfmt.Result, c column) *Figure {
	var values []float64
	off := false
	for _, l := range lines {
		if v, ok := l.Value(c.unit); ok && c.of(l) {
			values = append(values, v)
			off = off || l.GetConfig("machine-off") != ""
		}
	}
	if len(values) == 0 {
		return nil
	}
	return NewFigure(values, off)
}

// beside returns the figures of other programs that are of the settings of lines.
func (s *Set) beside(lines []*benchfmt.Result) (list []*benchfmt.Result) {
	for _, p := range s.Peers {
		if slices.ContainsFunc(lines, func(l *benchfmt.Result) bool { return matches(p, l) }) {
			list = append(list, p)
		}
	}
	return list
}

// matches tells whether a figure of another program is of the setting of a line. What its name
// leaves out may be anything.
func matches(peer, line *benchfmt.Result) bool {
	return line.GetConfig("experiment") == peer.GetConfig("experiment") && !slices.ContainsFunc(nameKeys(peer), func(pair [2]string) bool {
		return pair[0] != "peer" && Key(line, pair[0]) != pair[1]
	})
}

// peerColumns are the figures of other programs behind the columns of a unit: one for each that has some.
func (s *Set) peerColumns(lines []*benchfmt.Result, unit string) (list []column) {
	var names []string
	for _, p := range s.beside(lines) {
		if _, ok := p.Value(unit); ok {
			names = appendNew(names, Key(p, "peer"))
		}
	}
	for _, name := range names {
		list = append(list, column{head: name + ", " + unit, unit: unit, peer: name})
	}
	return list
}
