// Varve-libsql is the varve command with libSQL in place of SQLite.
package main

import (
	"os"

	"github.com/varvedb/varve/internal/cli"

	_ "github.com/varvedb/varve/store/duckdb"
	_ "github.com/varvedb/varve/store/libsql"
	_ "github.com/varvedb/varve/store/postgres"
	_ "github.com/varvedb/varve/store/sqlitego"
)

func main() { os.Exit(cli.Main()) }
