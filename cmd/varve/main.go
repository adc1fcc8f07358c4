// Varve keeps the entities of a chain node on an embedded engine, and measures
// which engine and which schema to choose. Run it with --help for its commands.
//
// This binary links SQLite, DuckDB, Postgres and the client of libSQL servers; what is
// asked of libSQL's files it hands to cmd/varve-libsql, which has libSQL in the place of
// SQLite, since both cannot be in one binary. Built with CGO_ENABLED=0 it has the engines
// that need no C, and is static.
package main

import (
	"os"

	"github.com/varvedb/varve/internal/cli"

	_ "github.com/varvedb/varve/store/libsql/remote"
	_ "github.com/varvedb/varve/store/postgres"
	_ "github.com/varvedb/varve/store/sqlitego"
)

func main() { os.Exit(cli.Main()) }
