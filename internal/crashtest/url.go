package crashtest

import (
	"math/rand/v2"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/varvedb/varve/internal/engine"
	"github.com/varvedb/varve/store/driver"
)

// storeURL returns the URL of an engine's database at a path without its suffix.
func storeURL(name, path string, params ...string) string {
	u := url.URL{Path: path + filepath.Ext(engine.Find(name).File)}
	text := name + "://" + u.EscapedPath()
	values := url.Values{}
	for i := 0; i+1 < len(params); i += 2 {
		values.Set(params[i], params[i+1])
	}
	if len(values) > 0 {
		text += "?" + values.Encode()
	}
	return text
}

// ownLog tells whether the log of an engine is in the memory of a server until it is
// written: what is acknowledged before that dies with the server.
func ownLog(name string) bool { return engine.Find(name).Server }

// levels returns the levels of durability that an engine offers in a cell: beyond those
// that the driver tells, a server that we start syncs as we say.
func levels(name string) []driver.Durability {
	d, _ := driver.Lookup(name)
	list := slices.Clone(d.Capabilities.Durabilities)
	if engine.Find(name).Server && !slices.Contains(list, driver.Unsafe) {
		list = append(list, driver.Unsafe)
	}
	return list
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
