package eav

import (
	"strings"

	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/query"
)

// dialect has the expressions that SQL dialects write differently.
type dialect struct {
	driver.Traits
	textNUL       bool // text may contain U+0000
	analyze       bool // ANALYZE is worth running
	walks         bool // an index can be read in order; see lead
	maxConditions int  // attribute conditions of one query; 0 for no limit
}

func newDialect(d driver.Dialect, caps driver.Capabilities) dialect {
	return dialect{
		Traits: d.Traits(), textNUL: caps.TextNUL, analyze: caps.Analyze, maxConditions: caps.MaxConditions,
		walks: d.Traits().OrderedIndexes && !caps.Spreads,
	}
}

// holds reports whether the engine can store s as text.
func (d dialect) holds(s string) bool { return d.textNUL || strings.IndexByte(s, 0) < 0 }

// hidden keeps a planner without statistics from searching by a column.
func (d dialect) hidden(column string) string {
	if d.IndexHints {
		return "+" + column
	}
	return column
}

// glob returns the condition that a.value matches a pattern.
func (d dialect) glob(pattern string) (test string, args []any) {
	if d.Regexp == "" && !d.textNUL {
		return "a.value GLOB ?", []any{pattern}
	}
	if d.Regexp == "" && strings.IndexByte(pattern, 0) >= 0 {
		return "varve_glob(?, a.value)", []any{pattern} // GLOB would cut the pattern
	}
	if d.Regexp == "" { // GLOB stops at a NUL; varve_glob, slower, does not
		test = "(CASE instr(a.value, char(0)) WHEN 0 THEN a.value GLOB ? ELSE varve_glob(?, a.value) END)"
		return test, []any{pattern, pattern}
	}
	re, ok := query.CompileGlob(pattern).Regexp()
	if !ok {
		return never, nil
	}
	return strings.Replace(d.Regexp, "{}", "a.value", 1), []any{re}
}
