package report

import (
	"cmp"
	"slices"
	"strings"

	"github.com/varvedb/varve/internal/engine"
	"github.com/varvedb/varve/schemas"
)

// reference is the side that others are compared with: the reference engine
// with the default layout, or, if that was not measured, with the same layout.
type reference struct {
	layout string
	lines  map[string]Lines // the reference's lines, by the key of their setting and sitting
	sides  map[string]bool  // names of sides that share a sitting with it
}

// newReference finds the reference for some lines among the lines of their
// experiments.
func newReference(lines, of Lines) *reference {
	experiments := of.configured("experiment")
	lines = lines.where(func(l *Line) bool { return slices.Contains(experiments, l.GetConfig("experiment")) })
	r := &reference{lines: make(map[string]Lines), sides: make(map[string]bool)}
	if slices.Contains(inNames(of, "layout"), schemas.DefaultLayout) {
		r.layout = schemas.DefaultLayout
	}
	for _, l := range lines.where(r.is) {
		key := r.key(l)
		r.lines[key] = append(r.lines[key], l)
	}
	for _, l := range lines {
		if r.is(l) || r.lines[r.key(l)] != nil {
			r.sides[setting(l)] = true
		}
	}
	return r
}

// String names the reference.
func (r *reference) String() string { return strings.TrimSpace(engine.Reference() + " " + r.layout) }

func (r *reference) is(l *Line) bool {
	return Key(l, "engine") == engine.Reference() && (r.layout == "" || Key(l, "layout") == r.layout)
}

// key identifies the sitting of a line and its name without the side.
func (r *reference) key(l *Line) string {
	parts := []string{sittingOf(l), l.GetConfig("host"), l.GetConfig("experiment"), string(l.Name.Base())}
	for _, pair := range nameKeys(l) {
		switch pair[0] {
		case "engine":
			pair[1] = engine.Reference()
		case "layout":
			pair[1] = cmp.Or(r.layout, pair[1])
		}
		parts = append(parts, pair[0]+"="+pair[1])
	}
	return strings.Join(parts, "/")
}

// absolute reports whether rows show absolute figures of a unit instead of
// ratios to the reference.
func (r *reference) absolute(lines Lines, unit string) bool {
	return r == nil || len(r.lines) == 0 || !relative.MatchString(unit) || slices.ContainsFunc(lines, func(l *Line) bool { return delivered(l, unit) })
}

// linesFor returns the reference's lines in the sittings of a side. There are
// none for a unit that describes the data, or a requested rate, and not the
// side's speed.
func (r *reference) linesFor(lines Lines, unit string) (list Lines) {
	if r == nil || !relative.MatchString(unit) {
		return nil
	}
	seen := make(map[string]bool)
	for _, l := range lines {
		key := r.key(l)
		if r.is(l) || delivered(l, unit) {
			return nil
		}
		if !seen[key] {
			list = append(list, r.lines[key]...)
		}
		seen[key] = true
	}
	return list
}

// all returns the reference's lines of a setting in all sittings.
func (r *reference) all(of string) (list Lines) {
	for _, lines := range r.lines {
		if setting(lines[0]) == of {
			list = append(list, lines...)
		}
	}
	return list
}
