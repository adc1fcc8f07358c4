// Varve stores the entities of a chain node on a choice of database engines,
// and measures which engine and schema to choose. Run it with --help for its
// commands.
//
// This binary links SQLite, DuckDB, Postgres and the client of libSQL servers.
// For libSQL's files it runs cmd/varve-libsql, which has libSQL in place of
// SQLite, because both cannot be in one binary. Built with CGO_ENABLED=0 it has
// the engines that need no C, and is static.
package main

import (
	"os"

	"github.com/varvedb/varve/internal/cli"

	_ "github.com/varvedb/varve/store/libsql/remote"
	_ "github.com/varvedb/varve/store/postgres"
	_ "github.com/varvedb/varve/store/sqlitego"
)

func main() { os.Exit(cli.Main()) }
