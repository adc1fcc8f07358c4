package eav

import (
	"fmt"
	"strings"

	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/query"
)

// dialect is the SQL of expressions that the dialects write differently.
type dialect struct {
	name    driver.Dialect
	textNUL bool // text may contain U+0000
	analyze bool // ANALYZE is worth running
	castBin bool // text is read as BLOB, so that no driver interprets it

	rowid      bool // rows have a rowid, by which fetching them is cheap
	correlates bool // a condition on few rows must be written as a subquery about each, not as an IN over a list
	walks      bool // an index can be read in its order, with subqueries about each row; see walk

	maxConditions int // attribute conditions of one query; 0 for no limit

	orderedJoin string // a join whose left side is evaluated first, where that can be said
	keyed       string // a row of values, the key and the first block of a version
}

func newDialect(d driver.Dialect, caps driver.Capabilities) dialect {
	dl := dialect{name: d, textNUL: caps.TextNUL, analyze: caps.Analyze, castBin: d == driver.SQLite, orderedJoin: " JOIN", keyed: "(?, ?)", maxConditions: caps.MaxConditions}
	if d == driver.SQLite {
		dl.rowid, dl.correlates = true, true
		dl.orderedJoin = " CROSS JOIN" // https://www.sqlite.org/optoverview.html#crossjoin
	}
	if d == driver.Postgres {
		dl.keyed = "(?::bytea, ?::bigint)" // which are text otherwise
	}
	dl.walks = d == driver.SQLite || d == driver.Postgres && !caps.Spreads
	return dl
}

// hidden keeps SQLite from searching by a column. Others choose by statistics.
func (d dialect) hidden(column string) string {
	if d.name == driver.SQLite {
		return "+" + column
	}
	return column
}

// text selects a text column so that it can be scanned into []byte unchanged.
func (d dialect) text(column string) string {
	if d.castBin {
		return "CAST(" + column + " AS BLOB)"
	}
	return column
}

// glob returns the conditions that a value matches a pattern. A pattern with a
// prefix has a range among them, which an index serves.
func (d dialect) glob(pattern string) ([]condition, error) {
	p := query.CompileGlob(pattern)
	if text, ok := p.Literal(); ok {
		return []condition{compared("=", text, true)}, nil
	}
	prefix, onlyStar := p.Prefix()
	within := prefixRange(prefix)
	if onlyStar {
		return within, nil
	}
	re, ok := p.Regexp()
	if !ok {
		return []condition{{text: func(string) string { return string(never) }}}, nil
	}
	switch {
	case d.name == driver.SQLite && d.textNUL && strings.IndexByte(pattern, 0) >= 0:
		// GLOB would cut the pattern.
		return append(within, condition{args: []any{pattern}, text: func(column string) string {
			return "varve_glob(?, " + column + ")"
		}}), nil
	case d.name == driver.SQLite && d.textNUL:
		// GLOB stops at a NUL; varve_glob, slower, does not.
		return append(within, condition{args: []any{pattern, pattern}, text: func(column string) string {
			return "(CASE instr(" + column + ", char(0)) WHEN 0 THEN " + column + " GLOB ? ELSE varve_glob(?, " + column + ") END)"
		}}), nil
	case d.name == driver.SQLite:
		return append(within, compared("GLOB", pattern, false)), nil
	case d.name == driver.DuckDB:
		return append(within, condition{args: []any{re}, text: func(column string) string {
			return "regexp_full_match(" + column + ", ?, 's')"
		}}), nil
	case d.name == driver.Postgres:
		return append(within, compared("~", re, false)), nil
	}
	return nil, fmt.Errorf("%w: glob patterns in dialect %q", driver.ErrUnsupported, d.name)
}

// prefixRange returns the conditions that text begins with a prefix: none for
// an empty one.
func prefixRange(prefix string) (list []condition) {
	lo, hi := query.PrefixRange(prefix)
	if lo != "" {
		list = append(list, compared(">=", lo, true))
	}
	if hi != "" {
		list = append(list, compared("<", hi, true))
	}
	return list
}
