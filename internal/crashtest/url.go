package crashtest

import (
	"math/rand/v2"
	"net/url"
	"slices"
	"strconv"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

// suffixes are the endings of the databases of engines that do not have the usual
// one. What Postgres has is a directory.
var suffixes = map[string]string{"duckdb": ".duckdb", "postgres": ""}

// storeURL returns the URL of an engine's database at a path without its suffix.
func storeURL(engine, path string, params ...string) string {
	suffix, special := suffixes[engine]
	if !special {
		suffix = ".db"
	}
	u := url.URL{Path: path + suffix}
	text := engine + "://" + u.EscapedPath()
	values := url.Values{}
	for i := 0; i+1 < len(params); i += 2 {
		values.Set(params[i], params[i+1])
	}
	if len(values) > 0 {
		text += "?" + values.Encode()
	}
	return text
}

// moreLevels are the levels of durability that a database in a directory of its own
// has beyond those that the driver tells: a server that we start syncs as we say.
var moreLevels = map[string][]driver.Durability{"postgres": {driver.Unsafe}}

// ownLog has the engines whose log is in the memory of a server until it is written:
// what is acknowledged before that dies with the server.
var ownLog = map[string]bool{"postgres": true}

// levels returns the levels of durability that an engine offers in a cell.
func levels(engine string) []driver.Durability {
	d, _ := driver.Lookup(engine)
	return append(slices.Clone(d.Capabilities.Durabilities), moreLevels[engine]...)
}

// smallMemory is the budget for caches: less than fits, and quick to set up.
const smallMemory = "64MiB"

// smallLog is the least log, in bytes, after which DuckDB may be told to
// checkpoint.
const smallLog = 65536

// drawParams draws the settings of one opening, so that what an engine does beside
// the commits happens often: checkpoints of a small log, in the background or in the
// commit, and merges of a small backlog.
func drawParams(rng *rand.Rand, engine string) []string {
	params := []string{"memory", smallMemory, "backlog", strconv.Itoa(1 + rng.IntN(60))}
	d, linked := driver.Lookup(engine)
	switch {
	case !linked:
	case d.Capabilities.WALCheckpoint:
		policy := driver.Background
		if rng.IntN(3) == 0 {
			policy = driver.Inline
		}
		params = append(params, "checkpoint", string(policy), "checkpoint_frames", strconv.Itoa(10+rng.IntN(400)))
	case d.Params["checkpoint_threshold"] != "":
		params = append(params, "checkpoint_threshold", strconv.Itoa(smallLog*(1+rng.IntN(8))))
	}
	return params
}

// hasLayout tells whether an engine that is linked has a layout of entities or
// events.
func hasLayout(engine, layout string) bool {
	events, ok := (Cell{Layout: layout}).Events()
	if !ok {
		return slices.Contains(store.Layouts(), layout)
	}
	d, linked := driver.Lookup(engine)
	return events == "" || linked && slices.Contains(store.EventLayouts(d.Info.Dialect), events)
}
