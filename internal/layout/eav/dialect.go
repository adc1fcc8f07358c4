package eav

import (
	"strings"

	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/query"
)

// dialect is the SQL of expressions that the dialects write differently.
type dialect struct {
	name          driver.Dialect
	textNUL       bool // text may contain U+0000
	analyze       bool // ANALYZE is worth running
	walks         bool // an index can be read in its order; see lead
	maxConditions int  // attribute conditions of one query; 0 for no limit
}

func newDialect(d driver.Dialect, caps driver.Capabilities) dialect {
	return dialect{
		name: d, textNUL: caps.TextNUL, analyze: caps.Analyze, maxConditions: caps.MaxConditions,
		walks: d == driver.SQLite || d == driver.Postgres && !caps.Spreads,
	}
}

// holds reports whether text of the engine can be s.
func (d dialect) holds(s string) bool { return d.textNUL || strings.IndexByte(s, 0) < 0 }

// hidden keeps SQLite from searching by a column. Others choose by statistics.
func (d dialect) hidden(column string) string {
	if d.name == driver.SQLite {
		return "+" + column
	}
	return column
}

// text selects a text column so that it can be scanned into []byte unchanged:
// on SQLite as BLOB, so that no driver interprets it.
func (d dialect) text(column string) string {
	if d.name == driver.SQLite {
		return "CAST(" + column + " AS BLOB)"
	}
	return column
}

// glob returns the condition that a.value matches a pattern.
func (d dialect) glob(pattern string) (test string, args []any) {
	if d.name == driver.SQLite && !d.textNUL {
		return "a.value GLOB ?", []any{pattern}
	}
	if d.name == driver.SQLite && strings.IndexByte(pattern, 0) >= 0 {
		return "varve_glob(?, a.value)", []any{pattern} // GLOB would cut the pattern
	}
	if d.name == driver.SQLite { // GLOB stops at a NUL; varve_glob, slower, does not
		test = "(CASE instr(a.value, char(0)) WHEN 0 THEN a.value GLOB ? ELSE varve_glob(?, a.value) END)"
		return test, []any{pattern, pattern}
	}
	re, ok := query.CompileGlob(pattern).Regexp()
	if !ok {
		return never, nil
	}
	if d.name == driver.DuckDB {
		return "regexp_full_match(a.value, ?, 's')", []any{re}
	}
	return "a.value ~ ?", []any{re}
}
