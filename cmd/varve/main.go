// Varve keeps the entities of a chain node on an embedded engine, and measures
// which engine and which schema to choose. Run it with --help for its commands.
//
// This binary links SQLite, DuckDB and Postgres; cmd/varve-libsql is the same
// with libSQL in the place of SQLite, since both cannot be in one binary.
package main

import (
	"os"

	"github.com/varvedb/varve/internal/cli"

	_ "github.com/varvedb/varve/store/duckdb"
	_ "github.com/varvedb/varve/store/postgres"
	_ "github.com/varvedb/varve/store/sqlite"
)

func main() { os.Exit(cli.Main()) }
