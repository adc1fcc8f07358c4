//go:build cgo

package main

import (
	_ "github.com/varvedb/varve/store/duckdb"
	_ "github.com/varvedb/varve/store/sqlite"
)
