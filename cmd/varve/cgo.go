//go:build cgo

package main

// Nothing is loaded that would look up symbols of the program: without a table of those of
// SQLite and DuckDB, which no stripping removes, it is 7 MB smaller.

// #cgo linux LDFLAGS: -Wl,--no-export-dynamic
import "C"

import (
	_ "github.com/varvedb/varve/store/duckdb"
	_ "github.com/varvedb/varve/store/sqlite"
)
