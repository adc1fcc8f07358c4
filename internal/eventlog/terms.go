package eventlog

import (
	"slices"
	"strconv"
	"strings"
)

// This file makes the statements that read rows of many terms at once.

// listsTerms reports whether statements have their terms in one argument, because
// a branch for each term takes long to plan. It needs an index that returns the
// first rows of a term in order.
func (l *Log) listsTerms() bool { return !l.traits.Compiled && l.traits.OrderedIndexes }

// termsAtOnce is the most lists that one statement reads.
func (l *Log) termsAtOnce(lists []*list) int {
	if l.traits.Compiled || slices.ContainsFunc(lists, unlistable) {
		return maxArms
	}
	return maxTerms
}

// unlistable reports whether a term cannot be one of several in an argument,
// because the name of a type may contain their separator.
func unlistable(l *list) bool { return strings.Contains(l.term, separator) }

// maxArmsInstead is the most terms that have a branch each although they could be
// in one argument, because Postgres plans a few branches faster.
const maxArmsInstead = 4

// statement returns the statement that reads the next rows of lists, each with
// the number of its list. The rows of one list are in order.
func (s *search) statement(lists []*list, seek bool) (text string, args []any) {
	rows := 0
	for _, l := range lists {
		if l.nextRows = min(4*l.nextRows, maxRows); l.nextRows == 0 {
			l.nextRows = s.firstRows
		}
		rows = max(rows, l.nextRows)
	}
	limit, kind := s.log.rowLimit(rows)
	if kind != 0 {
		for _, l := range lists {
			l.nextRows = rows
		}
	}
	most := maxArms
	if s.log.listsTerms() {
		most = maxArmsInstead
	}
	withEnd := s.withEnd && !s.endKnown
	if len(lists) > most && !slices.ContainsFunc(lists, unlistable) {
		return s.listed(lists, limit, kind, withEnd)
	}
	shape := append(make([]byte, 0, 32), 'l', flag(s.backwards), flag(seek), flag(withEnd), kind)
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
			args = append(args, int64(l.nextRows+1))
		}
	}
	return s.log.texts.Get(shape, func() string { return s.text(lists, seek, limit, withEnd) }), args
}

// filters reports whether a statement leaves out the rows of a list that do not
// name the wanted type. To filter a row takes a third of the work of reading it.
func (l *Log) filters(list *list) bool { return l.traits.BlobSearch && len(list.types) == 1 }

// rowLimit returns the clause that limits a list to one row more than a number,
// so that the reader learns whether there are more. Kind distinguishes the texts;
// it is zero when the number is an argument.
func (l *Log) rowLimit(rows int) (text string, kind byte) {
	if l.traits.Compiled {
		return " LIMIT +?", 0
	}
	return " LIMIT " + strconv.Itoa(rows+1), byte(rows)
}

// listed returns the statement that has the terms in one argument, and the
// positions at which to read on in another one.
func (s *search) listed(lists []*list, limit string, kind byte, withEnd bool) (text string, args []any) {
	text = s.log.texts.Get([]byte{'L', flag(s.backwards), flag(withEnd), kind}, func() string {
		return s.log.listedText(s.backwards, limit, int(kind)+1, withEnd)
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

// listedText returns the text of listed. The statements of the schema look for the
// row to begin with in any case.
func (l *Log) listedText(backwards bool, limit string, rows int, withEnd bool) string {
	name := "listed_terms"
	if backwards {
		name = "listed_terms_backwards"
	}
	return strings.NewReplacer("{limit}", limit, "{rows}", strconv.Itoa(rows), "{end}", endRow(withEnd)).Replace(l.schema.Statements[name])
}

// endRow adds a row with the end of the log to a statement. Its position is the
// head, and its number is -1 minus the position at which the postings end.
func endRow(withEnd bool) string {
	if !withEnd {
		return ""
	}
	return " UNION ALL SELECT -1 - coalesce((SELECT min(position) FROM event_index), 0)," +
		" (SELECT coalesce(max(position), 0) FROM events), CAST('' AS BYTEA)"
}

// text returns the text with a branch for each term. Each row has the number of
// its term, because an engine may return the branches in any order.
func (s *search) text(lists []*list, seek bool, limit string, withEnd bool) string {
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
		if len(lists) == 1 && !withEnd {
			return "SELECT " + arm
		}
		if i > 0 {
			b.WriteString(" UNION ALL ")
		}
		b.WriteString("SELECT * FROM (SELECT " + arm + ") AS a" + strconv.Itoa(i))
	}
	return b.String() + endRow(withEnd)
}
