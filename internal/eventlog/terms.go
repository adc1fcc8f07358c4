package eventlog

import (
	"slices"
	"strconv"
	"strings"

	"github.com/varvedb/varve/store/driver"
)

// How the rows of many terms are read with one statement.

// listsTerms tells whether statements have their terms in one argument. To SQLite a
// branch for each is as cheap, and a statement is not far away.
func (l *Log) listsTerms() bool { return l.dialect == driver.Postgres }

// termsAtOnce bounds the lists of a statement.
func (l *Log) termsAtOnce(lists []*list) int {
	if l.dialect == driver.SQLite || slices.ContainsFunc(lists, unlistable) {
		return maxArms
	}
	return maxTerms
}

// unlistable tells whether a term cannot be one of a list in an argument: the name of a
// type may contain what separates them.
func unlistable(l *list) bool { return strings.Contains(l.term, separator) }

// fewArms bounds the terms that have a branch each where they may be in one argument:
// to Postgres a branch is less work to plan.
const fewArms = 4

// statement reads the next rows of lists, each with the number of its list; those of
// one list are in order.
func (s *search) statement(lists []*list, seek bool) (text string, args []any) {
	rows := 0
	for _, l := range lists {
		if l.rows = min(4*l.rows, maxRows); l.rows == 0 {
			l.rows = s.rows
		}
		rows = max(rows, l.rows)
	}
	limit, kind := s.log.rowLimit(rows)
	if kind != 0 {
		for _, l := range lists {
			l.rows = rows
		}
	}
	most := maxArms
	if s.log.listsTerms() {
		most = fewArms
	}
	tell := s.tell && !s.told
	if len(lists) > most && !slices.ContainsFunc(lists, unlistable) {
		return s.listed(lists, limit, kind, tell)
	}
	shape := append(make([]byte, 0, 32), 'l', flag(s.backwards), flag(seek), flag(tell), kind)
	args = make([]any, 0, 5*len(lists))
	for _, l := range lists {
		args = append(args, l.term)
		if seek {
			args = append(args, l.term)
		}
		args = append(args, position(s.resume(l)))
		shape = append(shape, flag(s.log.filters(l)))
		if s.log.filters(l) {
			args = append(args, []byte(l.types[0]))
		}
		if kind == 0 {
			args = append(args, int64(l.rows+1))
		}
	}
	return s.log.texts.get(shape, func() string { return s.text(lists, seek, limit, tell) }), args
}

// filters tells whether a statement leaves out the rows of a list that do not name the
// type that is wanted: that is a third of the work of reading one.
func (l *Log) filters(list *list) bool { return l.dialect == driver.SQLite && len(list.types) == 1 }

// rowLimit bounds the rows of a list by one more than a number, which tells whether
// there are more; kind says which of the texts that is, zero when it is an argument.
func (l *Log) rowLimit(rows int) (text string, kind byte) {
	if l.dialect == driver.SQLite {
		return " LIMIT +?", 0
	}
	return " LIMIT " + strconv.Itoa(rows+1), byte(rows)
}

// listed has the terms in one argument, and where to read on in another one.
func (s *search) listed(lists []*list, limit string, kind byte, tell bool) (text string, args []any) {
	text = s.log.texts.get([]byte{'L', flag(s.backwards), flag(tell), kind}, func() string {
		return s.log.listedText(s.backwards, limit, int(kind)+1, tell)
	})
	var terms, from strings.Builder
	for i, l := range lists {
		if i > 0 {
			terms.WriteString(separator)
			from.WriteByte(',')
		}
		terms.WriteString(l.term)
		from.WriteString(strconv.FormatInt(position(s.resume(l)), 10))
	}
	return text, []any{terms.String(), from.String()}
}

// listedText looks for the row to begin with in any case. DuckDB reads all rows of the
// terms: it has no index that gives the first ones in order.
func (l *Log) listedText(backwards bool, limit string, rows int, tell bool) string {
	if l.dialect == driver.DuckDB {
		from := "coalesce(lead(e.position) OVER (PARTITION BY t.n ORDER BY e.position) > t.start, TRUE)"
		if backwards {
			from = "e.position <= t.start"
		}
		return "SELECT n, position, list FROM (SELECT n, position, list, row_number() OVER (PARTITION BY n" + order("position", backwards) + ") AS r" +
			" FROM (SELECT t.n, e.position, e.list, " + from + " AS wanted" +
			" FROM (SELECT unnest(range(len(string_split(a.terms, chr(31))))) AS n, unnest(string_split(a.terms, chr(31))) AS term," +
			" unnest(CAST(string_split(a.starts, ',') AS BIGINT[])) AS start" +
			" FROM (SELECT CAST(? AS VARCHAR) AS terms, CAST(? AS VARCHAR) AS starts) AS a) AS t" +
			" JOIN event_postings AS e ON e.term = t.term) AS x WHERE wanted) AS y WHERE r <= " + strconv.Itoa(rows) +
			tellEnds(tell) + " ORDER BY n," + strings.TrimPrefix(order("position", backwards), " ORDER BY")
	}
	from := "e.position >= coalesce((SELECT max(b.position) FROM event_postings AS b WHERE b.term = t.term AND b.position <= t.start), 0)"
	if backwards {
		from = "e.position <= t.start"
	}
	return "SELECT t.n - 1 AS n, p.position, p.list" +
		" FROM unnest(string_to_array(?, chr(31)) COLLATE \"C\", CAST(string_to_array(?, ',') AS BIGINT[])) WITH ORDINALITY AS t(term, start, n)" +
		" CROSS JOIN LATERAL (SELECT e.position, e.list FROM event_postings AS e WHERE e.term = t.term AND " + from +
		order("e.position", backwards) + limit + ") AS p" + tellEnds(tell)
}

// tellEnds adds a row to a statement that tells how far the log goes: with a number below
// those of lists, by how much says up to where there are postings.
func tellEnds(tell bool) string {
	if !tell {
		return ""
	}
	return " UNION ALL SELECT -1 - coalesce((SELECT position FROM event_index), 0)," +
		" (SELECT coalesce(max(position), 0) FROM events), CAST('' AS BYTEA)"
}

// text reads rows of several terms. Each term gives its number, so that it does not
// matter in which order the engine answers for them; the rows of one are in order.
func (s *search) text(lists []*list, seek bool, limit string, tell bool) string {
	from := "position >= ?"
	switch {
	case s.backwards:
		from = "position <= ?"
	case seek:
		from = "position >= coalesce((SELECT max(position) FROM event_postings WHERE term = ? AND position <= ?), 0)"
	}
	var b strings.Builder
	for i, l := range lists {
		arm := strconv.Itoa(i) + " AS n, position, list FROM event_postings WHERE term = ? AND " + from
		if s.log.filters(l) {
			arm += " AND instr(list, ?) > 0"
		}
		arm += order("position", s.backwards) + limit
		if len(lists) == 1 && !tell {
			return "SELECT " + arm
		}
		if i > 0 {
			b.WriteString(" UNION ALL ")
		}
		b.WriteString("SELECT * FROM (SELECT " + arm + ") AS a" + strconv.Itoa(i))
	}
	return b.String() + tellEnds(tell)
}
