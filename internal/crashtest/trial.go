// Package crashtest tries to make a store lose data. A worker process writes to
// a store, records acknowledged steps in a journal, and is interrupted at a
// random moment: it is killed (Crash), its disk loses power (Power), or its
// disk fills up (Full). The next worker opens the store, compares it with the
// journal, and continues.
//
// A worker derives its expectations from the journal alone: every step is drawn
// from a seed in the journal, so each process can rebuild the model of the
// store (model.Model for entities, the list of appends for events). It is a
// violation if an acknowledged step is missing, if an unknown step or a part of
// one is present, or if an index and the model give different answers.
//
// Torture runs these trials and others (Trial) on every engine and layout, in
// rounds.
package crashtest

import (
	"context"
	"math/rand/v2"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/varvedb/varve/internal/engine"
	"github.com/varvedb/varve/store/driver"
)

// Trial is a kind of fault that torture injects repeatedly on every engine and
// layout.
type Trial struct {
	Name string // one word in lower case, such as "crash"
	Turn int    // faults on one store, after which a new one is made

	// Skip, if given, returns why the trial cannot run on a cell here: a
	// privilege, a device or a program is missing, or the engine has nothing
	// that could fail. "" means that it can.
	Skip func(c Cell) string

	// Run runs one round: it makes a store in c.Dir, which is empty, injects
	// c.Faults faults and counts each in r. It uses only rng for randomness, so
	// that a round can be repeated by its seed. It ends early, without an
	// error, when ctx is done. A broken promise is recorded in r and is no
	// error: an error means that the trial itself could not continue.
	Run func(ctx context.Context, c Cell, rng *rand.Rand, r *Row) error
}

// Cell is the subject of a round: an engine, a layout, and a directory to write
// to.
type Cell struct {
	Engine string // as in a URL
	Layout string // of entities, or EventsLayout
	Dir    string // empty directory of this round, removed after it
	Seed   uint64 // of this round, for messages
	Faults int    // how many to try in this round
}

// EventsLayout is the layout name of a cell with an event store.
const EventsLayout = "events"

// ownLog reports whether the engine's log is buffered in the memory of a
// server. A step that is acknowledged before the log is written is lost with
// the server.
func (c Cell) ownLog() bool { return engine.Find(c.Engine).Server }

// URL returns the URL of a named database in the cell's directory. Parameters
// alternate name and value.
func (c Cell) URL(name string, params ...string) string {
	u := url.URL{Path: filepath.Join(c.Dir, name) + filepath.Ext(engine.Find(c.Engine).File)}
	values := url.Values{}
	for i := 0; i+1 < len(params); i += 2 {
		values.Set(params[i], params[i+1])
	}
	return strings.TrimSuffix(c.Engine+"://"+u.EscapedPath()+"?"+values.Encode(), "?")
}

// skipLevel returns why an engine cannot be tested at a durability level, or
// "". The driver refuses some levels, and only a server that we start has our
// settings.
func (c Cell) skipLevel(level driver.Durability) string {
	d, _ := driver.Lookup(c.Engine)
	if slices.Contains(d.Capabilities.Durabilities, level) || c.ownLog() && level == driver.Unsafe {
		return ""
	}
	return "the engine has no durability " + string(level)
}

// levelName is the name of a trial on a level of durability.
func levelName(name string, level driver.Durability) string {
	return strings.TrimSuffix(name+"-"+string(level), "-"+string(driver.Durable))
}

// smallMemory is the cache budget: too small for the data, and quick to set up.
const smallMemory = "64MiB"

// smallLog is the minimum log size, in bytes, at which DuckDB can be told to
// checkpoint.
const smallLog = 65536

// drawParams draws the settings for one opening, so that background work
// happens often: checkpoints of a small log, in the background or in the
// commit, and merges of a small backlog.
func (c Cell) drawParams(rng *rand.Rand) []string {
	params := []string{"memory", smallMemory, "backlog", strconv.Itoa(1 + rng.IntN(60))}
	d, linked := driver.Lookup(c.Engine)
	switch {
	case !linked:
	case d.Capabilities.WALCheckpoint:
		policy := driver.Background
		if rng.IntN(3) == 0 {
			policy = driver.Inline
		}
		params = append(params, "checkpoint", string(policy), "checkpoint_frames", strconv.Itoa(10<<rng.IntN(10)))
	case d.Params["checkpoint_threshold"] != "":
		params = append(params, "checkpoint_threshold", strconv.Itoa(smallLog*(1+rng.IntN(8))))
	}
	return params
}

// config is the common configuration of the cell's workers, on a store in a
// directory.
func (c Cell) config(rng *rand.Rand, dir string, params ...string) workerConfig {
	journal := filepath.Join(c.Dir, "journal")
	c.Dir = dir
	return workerConfig{
		URL: c.URL("store", append(c.drawParams(rng), params...)...), Layout: c.Layout, Journal: journal,
		Seed: rng.Uint64(), NoPrune: c.Seed%2 == 0,
	}
}
