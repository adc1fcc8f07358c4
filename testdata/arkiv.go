// Package testdata embeds the real Arkiv files that tests, examples and
// "varve compare" run on.
package testdata

import _ "embed"

// ArkivBlocks is a tar of 100 real Arkiv blocks; see arkiv-small/README.md.
//
//go:embed arkiv-small/blocks.tar
var ArkivBlocks []byte

// ArkivQueries is queries with their right answers, one JSON object a line.
//
//go:embed arkiv-small/queries.jsonl
var ArkivQueries []byte
