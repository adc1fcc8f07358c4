package crashtest

import (
	"context"
	"math/rand/v2"
	"path/filepath"
)

// Trial is one kind of fault that torture tries again and again, on every engine
// and layout in turn.
type Trial interface {
	// Name is one word in lower case, such as "crash".
	Name() string

	// Skip says why the trial cannot be made on a cell here: a privilege, a
	// device or a program is missing, or the engine has nothing to fail. "" means
	// that it can.
	Skip(c Cell) string

	// Run does one turn: it makes a store in c.Dir, which is empty, tries about
	// c.Faults faults on it and counts each in r. What it draws comes from rng
	// alone, so that a turn can be repeated by its seed. It ends early, without an
	// error, when ctx is done. A broken promise goes into r and is no error: an
	// error means that the trial itself could not go on.
	Run(ctx context.Context, c Cell, rng *rand.Rand, r *Report) error
}

// Cell is what a turn is about and where it may write.
type Cell struct {
	Engine string // as in a URL
	Layout string // of entities, or EventsLayout
	Dir    string // empty directory of this turn, removed after it
	Seed   uint64 // of this turn, for messages
	Faults int    // about how many to try in this turn
}

// EventsLayout is the layout of a cell that has an event store.
const EventsLayout = "events"

// URL returns the URL of a database by a name within the cell's directory.
// Parameters are name, value, ….
func (c Cell) URL(name string, params ...string) string {
	return storeURL(c.Engine, filepath.Join(c.Dir, name), params...)
}
