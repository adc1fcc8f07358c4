// Package feed reads and writes streams of blocks in the vocabulary of store/entity:
//
//   - ReadTar, OpenTar and TarWriter: Arkiv's block tar, whose entries
//     block-<N>.json.zst hold one JSON operation a line;
//   - ReadLines and WriteLines: lines of JSON, one block each, which a script can
//     make of any database;
//   - Arkiv: the database that Arkiv's sqlite-store keeps, turned back into the
//     changes that its blocks made, or that of its sqlite-bitmap-store, which
//     has the current state only.
//
// Everything streams: no more than one block is held in memory. Readers are strict. A field, a kind
// or a number they do not know means that the feed comes from a writer with other rules, and
// guessing would put a wrong history into a store.
package feed

import (
	"errors"
	"fmt"

	"github.com/varvedb/varve/store/driver"
)

// ErrFormat: the input is not what its format says, or is damaged. The error
// around it names the place: entry and line of a tar, table and row of a
// database. Errors of reading itself (a disk, a network) do not wrap it.
var ErrFormat = errors.New("malformed block feed")

func malformed(format string, args ...any) error {
	return driver.Of(ErrFormat, fmt.Errorf(format, args...))
}
