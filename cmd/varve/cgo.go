//go:build cgo

package main

// The program loads no libraries that look up its symbols. Without the table of
// SQLite's and DuckDB's symbols, which stripping keeps, it is 7 MB smaller.

// #cgo linux LDFLAGS: -Wl,--no-export-dynamic
import "C"

import (
	_ "github.com/varvedb/varve/store/duckdb"
	_ "github.com/varvedb/varve/store/sqlite"
)
