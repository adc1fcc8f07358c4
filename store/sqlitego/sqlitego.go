// Package sqlitego is the SQLite engine without cgo, through modernc.org/sqlite: SQLite's
// C source, translated to Go. Import it for its side effect:
//
//	import _ "github.com/varvedb/varve/store/sqlitego"
//
// It opens the files that store/sqlite opens, can be linked with every other
// engine, and needs no C compiler. A program with no other engine is static and
// can be compiled for other systems. Commits that wait for the disk take as
// long as in store/sqlite; reads take up to half as long again.
//
// In one process a database is open by one of store/sqlite, store/libsql and this package
// at a time: a second one gets ErrLocked, since SQLite's locks keep out other processes and
// not other libraries.
package sqlitego

import (
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"

	"modernc.org/sqlite"
	native "modernc.org/sqlite/lib"

	"github.com/varvedb/varve/internal/sqlitewal"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/query"
)

func init() {
	own := &sqlite.Driver{}
	if err := own.RegisterFunction("varve_glob", glob); err != nil {
		panic(err)
	}
	sql.Register("varve-sqlitego", own)
	library := &sqlitewal.Library{
		Info:   driver.Info{Name: "sqlitego", Dialect: driver.SQLite, Library: "modernc.org/sqlite", Version: native.SQLITE_VERSION},
		Number: native.SQLITE_VERSION_NUMBER,
		Gaps: []driver.Gap{
			{Name: "cancellation", Reason: "the library interrupts a statement until it has its first row; from then on the end of its context is noticed between rows"},
		},
		TextNUL: true,
		Direct:  true,
		Open: func(path string, readOnly bool) (*sql.DB, error) {
			return sql.Open("varve-sqlitego", sqlitewal.URI(path, readOnly))
		},
		MapError: mapError,
	}
	library.Register()
}

// glob is varve_glob(pattern, text), because SQLite's GLOB stops at the first
// NUL in the text, and so do the library's copies of arguments.
var glob = &sqlite.FunctionImpl{
	NArgs: 2, Deterministic: true, VolatileArgs: true,
	Scalar: func(_ *sqlite.FunctionContext, args []sqldriver.Value) (sqldriver.Value, error) {
		pattern, text := args[0].(string), args[1].(string)
		return query.CompileGlob(pattern).Match(text), nil
	},
}

// mapError maps the library's errors. They do not include the system's error.
func mapError(err error) error {
	var native *sqlite.Error
	if !errors.As(err, &native) {
		return err
	}
	return sqlitewal.Joined(err, native.Code(), 0)
}
