// Package testdata embeds the real Arkiv files that tests, examples and
// "varve compare" run on.
package testdata

import _ "embed"

// ArkivBlocks is a tar of 100 real Arkiv blocks; see arkiv-small/README.md.
//
//go:embed arkiv-small/blocks.tar
var ArkivBlocks []byte

// A store's contents after these blocks: the number of blocks, the last one's
// number, and the digest.
const (
	ArkivCount  = 100
	ArkivHead   = 1263
	ArkivDigest = "693ace66b897f11e30f34e9bec4324394f8ab10813f9cb26a6fe899300259287"
)

// ArkivQueries is queries with their right answers, one JSON object a line.
//
//go:embed arkiv-small/queries.jsonl
var ArkivQueries []byte
