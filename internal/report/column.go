package report

import (
	"slices"
	"strings"
)

// column is a Column for one value of the key that it is repeated for.
type column struct {
	head, unit string
	of         func(*Line) bool
	peer       string // instead of a key's value: another program whose figure it is
}

// cell computes the cell of lines in a column: an absolute figure, or, if there
// is a reference in the same sittings, the ratio to it.
func (s *Set) cell(lines Lines, c column, with *reference) Cell {
	if c.peer != "" {
		cell := figure(s.published(lines.having(c.unit)), column{unit: c.unit, of: func(p *Line) bool { return Key(p, "peer") == c.peer }}).cell()
		cell.Of = ""
		return cell
	}
	of := lines.where(c.of)
	f := figure(of, c)
	if r := Pair(f, figure(with.linesFor(of, c.unit), column{unit: c.unit})); r != nil {
		cell := r.cell()
		cell.Rank = &r.Median
		return cell
	}
	cell := f.cell()
	switch {
	case f == nil || f.Busy > 0 || f.AtLimit:
	case with.absolute(of, c.unit):
		cell.Rank = &f.Center
	case with.is(of[0]):
		cell.Rank = new(1.0)
	}
	return cell
}

// figure returns the figure of lines in a column; nil for none.
func figure(lines Lines, c column) *Figure {
	var sittings []Runs
	var flags Figure
	for _, l := range lines.having(c.unit) {
		if c.of != nil && !c.of(l) {
			continue
		}
		v, _ := l.Value(c.unit)
		if busy, has := l.Value("busy"); has && busy < MinBusy && capacity.MatchString(c.unit) && !delivered(l, c.unit) && (flags.Busy == 0 || busy < flags.Busy) {
			flags.Busy = busy
		}
		if atLimit(l, c.unit, v) {
			flags.AtLimit, v = true, waitLimit
		}
		flags.Off = flags.Off || l.GetConfig("machine-off") != ""
		sittings = AddRun(sittings, sittingOf(l), l.GetConfig("host"), v)
	}
	f := NewFigure(sittings)
	if f != nil {
		f.Off, f.AtLimit, f.Busy = flags.Off, flags.AtLimit, flags.Busy
	}
	return f
}

// published returns other programs' published figures with the settings of
// lines.
func (s *Set) published(lines Lines) Lines {
	return s.Peers.where(func(p *Line) bool {
		return slices.ContainsFunc(lines, func(l *Line) bool { return matches(p, l) })
	})
}

// matches reports whether another program's figure has the setting of a line.
// Keys that its name leaves out match anything.
func matches(peer, line *Line) bool {
	return line.GetConfig("experiment") == peer.GetConfig("experiment") && !slices.ContainsFunc(nameKeys(peer), func(pair [2]string) bool {
		return pair[0] != "peer" && Key(line, pair[0]) != pair[1]
	})
}

// peerColumns returns columns of other programs' figures for a unit: one for
// each program that has some. About describes how each was run.
func (s *Set) peerColumns(lines Lines, unit string) (list []column, about []string) {
	var names []string
	for _, p := range s.published(lines).having(unit) {
		name := Key(p, "peer")
		if !slices.Contains(names, name) {
			head := name + ", " + unit
			if strings.HasSuffix(p.GetConfig("peer"), "(published)") {
				head = "published: " + head
			}
			list = append(list, column{head: head, unit: unit, peer: name})
		}
		names = appendNew(names, name)
		if how := strings.Trim(p.GetConfig("server")+"; "+p.GetConfig("settings"), "; "); how != "" {
			about = appendNew(about, name+": "+how)
		}
	}
	return list, about
}
