package sqlite

import (
	sqlite3 "github.com/mattn/go-sqlite3"

	"github.com/varvedb/varve/store/query"
)

// registerFunctions adds varve_glob(pattern, text), which sees text behind a
// NUL. SQLite's own GLOB stops at the first NUL.
func registerFunctions(conn *sqlite3.SQLiteConn) error {
	return conn.RegisterFunc("varve_glob", func(pattern, text string) bool {
		return query.CompileGlob(pattern).Match(text)
	}, true)
}
