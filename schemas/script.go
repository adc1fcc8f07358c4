package schemas

import "strings"

// statement is one statement of a .sql file with the comments before it.
type statement struct {
	name    string // after "-- name:"
	comment string // the other comment lines, joined by spaces
	sql     string // without comments and the closing semicolon
}

// splitScript cuts a file into statements. A statement ends with a line that
// ends with a semicolon; comments take whole lines; a blank line ends a comment
// that belongs to no statement.
func splitScript(text string) []statement {
	var list []statement
	var cur statement
	var lines, comments []string
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \n")
		comment, isComment := strings.CutPrefix(strings.TrimSpace(line), "--")
		switch {
		case isComment && strings.HasPrefix(comment, " name: "):
			cur.name = strings.TrimPrefix(comment, " name: ")
		case isComment:
			comments = append(comments, strings.TrimSpace(comment))
		case line == "" && len(lines) == 0:
			comments = nil
		case line != "":
			lines = append(lines, strings.TrimSuffix(line, ";"))
			if strings.HasSuffix(line, ";") {
				cur.sql, cur.comment = strings.Join(lines, "\n"), strings.Join(comments, " ")
				list = append(list, cur)
				cur, lines, comments = statement{}, nil, nil
			}
		}
	}
	return list
}
