//go:build cgo

package main

// The program loads no libraries that look up its symbols. Leaving out the
// dynamic table of SQLite's and DuckDB's symbols, which stripping keeps, saves
// 7 MB.

// #cgo linux LDFLAGS: -Wl,--no-export-dynamic
import "C"

import (
	_ "github.com/varvedb/varve/store/duckdb"
	_ "github.com/varvedb/varve/store/sqlite"
)
