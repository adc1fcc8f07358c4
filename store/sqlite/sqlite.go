// Package sqlite is the SQLite engine, through github.com/mattn/go-sqlite3.
// Import it for its side effect:
//
//	import _ "github.com/varvedb/varve/store/sqlite"
//
// It cannot be linked together with store/libsql: both carry the SQLite C code
// under the same symbols. Package store/sqlitego opens the same files and needs
// no C compiler.
package sqlite

import (
	"database/sql"
	"errors"

	sqlite3 "github.com/mattn/go-sqlite3"

	"github.com/varvedb/varve/internal/sqlitewal"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/query"
)

func init() {
	sql.Register("varve-sqlite", &sqlite3.SQLiteDriver{ConnectHook: registerFunctions})
	version, number, _ := sqlite3.Version()
	library := &sqlitewal.Library{
		Info:    driver.Info{Name: "sqlite", Dialect: driver.SQLite, Library: "github.com/mattn/go-sqlite3", Version: version},
		Number:  number,
		TextNUL: true,
		Direct:  true,
		Open: func(path string, readOnly bool) (*sql.DB, error) {
			return sql.Open("varve-sqlite", sqlitewal.URI(path, readOnly))
		},
		MapError: mapError,
	}
	library.Register()
}

// registerFunctions adds varve_glob(pattern, text), because SQLite's GLOB stops
// at the first NUL in the text.
func registerFunctions(conn *sqlite3.SQLiteConn) error {
	return conn.RegisterFunc("varve_glob", func(pattern, text string) bool {
		return query.CompileGlob(pattern).Match(text)
	}, true)
}

func mapError(err error) error {
	var native sqlite3.Error
	if !errors.As(err, &native) {
		return err
	}
	return sqlitewal.Joined(err, int(native.Code), native.SystemErrno)
}
