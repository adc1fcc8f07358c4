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

	maxConditions int // attribute conditions of one query; 0 for no limit

	orderedJoin string // a join whose left side is evaluated first, where that can be said
}

func newDialect(d driver.Dialect, caps driver.Capabilities) dialect {
	dl := dialect{name: d, textNUL: caps.TextNUL, analyze: caps.Analyze, castBin: d == driver.SQLite, orderedJoin: " JOIN", maxConditions: caps.MaxConditions}
	if d == driver.SQLite {
		dl.orderedJoin = " CROSS JOIN" // https://www.sqlite.org/optoverview.html#crossjoin
	}
	return dl
}

// text selects a text column so that it can be scanned into []byte unchanged.
func (d dialect) text(column string) string {
	if d.castBin {
		return "CAST(" + column + " AS BLOB)"
	}
	return column
}

// glob returns a condition that a column matches a pattern. A pattern that is
// a prefix becomes a range, which an index serves.
func (d dialect) glob(column, pattern string) (cond string, args []any, err error) {
	p := query.CompileGlob(pattern)
	if text, ok := p.Literal(); ok {
		return column + " = ?", []any{text}, nil
	}
	if lo, hi, ok := p.PrefixRange(); ok {
		cond, args = prefixRange(column, lo, hi)
		return cond, args, nil
	}
	re, ok := p.Regexp()
	if !ok {
		return never, nil, nil
	}
	switch {
	case d.name == driver.SQLite && d.textNUL && strings.IndexByte(pattern, 0) >= 0:
		cond, args = "varve_glob(?, "+column+")", []any{pattern} // GLOB would cut the pattern
	case d.name == driver.SQLite && d.textNUL:
		// GLOB stops at a NUL; varve_glob, slower, does not.
		cond = "(CASE instr(" + column + ", char(0)) WHEN 0 THEN " + column + " GLOB ? ELSE varve_glob(?, " + column + ") END)"
		args = []any{pattern, pattern}
	case d.name == driver.SQLite:
		cond, args = column+" GLOB ?", []any{pattern}
	case d.name == driver.DuckDB:
		cond, args = "regexp_full_match("+column+", ?, 's')", []any{re}
	case d.name == driver.Postgres:
		cond, args = column+" ~ ?", []any{re}
	default:
		return "", nil, fmt.Errorf("%w: glob patterns in dialect %q", driver.ErrUnsupported, d.name)
	}
	if prefix, _ := p.Prefix(); prefix != "" {
		lo, hi, _ := query.CompileGlob(quoteGlob(prefix) + "*").PrefixRange()
		within, bounds := prefixRange(column, lo, hi)
		return "(" + within + " AND " + cond + ")", append(bounds, args...), nil
	}
	return cond, args, nil
}

// quoteGlob returns a pattern that matches just the text.
func quoteGlob(text string) string {
	return strings.NewReplacer("*", "[*]", "?", "[?]", "[", "[[]").Replace(text)
}

func prefixRange(column, lo, hi string) (string, []any) {
	switch {
	case hi != "":
		return "(" + column + " >= ? AND " + column + " < ?)", []any{lo, hi}
	case lo != "":
		return column + " >= ?", []any{lo}
	}
	return always, nil
}

// Conditions with a known answer.
const (
	always = "1 = 1"
	never  = "1 = 0"
)
