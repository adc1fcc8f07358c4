package bench

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/varvedb/varve/schemas"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/event"
)

// formatVersion is part of every key. Raise it when the same parameters lead to
// a different store, for example when rows are encoded differently under the
// same SQL.
const formatVersion = 1

// Dataset is a store of generated entities, or of events.
type Dataset struct {
	Engine  Engine     `json:"engine"`
	Layout  string     `json:"layout"`
	Profile Profile    `json:"profile"`
	Gen     GenOptions `json:"gen"` // no entities: an empty store

	// Source, if given, provides the store's contents instead of Profile and
	// Gen.
	Source *Source `json:"source,omitempty"`

	cache *Cache // in which it is built; nil for none
}

// startProgress starts a progress report for building the data set; a total of zero
// means unknown.
func (d Dataset) startProgress(unit string, total uint64) Progress {
	return d.cache.StartProgress("  data set, "+d.Layout+" on "+d.Engine.Label(), unit, int64(total))
}

// fillsItself reports whether its source fills the database itself.
func (d Dataset) fillsItself() bool { return d.Source != nil && d.Source.Fill != nil }

// events reports whether it is an event store.
func (d Dataset) events() bool { return d.Source != nil && d.Source.Events != nil }

// blocks streams the blocks that create the store's contents.
func (d Dataset) blocks() Stream {
	if d.Source != nil {
		return d.Source.Blocks()
	}
	return Blocks(d.Profile, d.Gen)
}

// amount estimates the data that is written: rows of all versions, and bytes of
// payloads.
func (d Dataset) amount() (rows, payload uint64) {
	if d.Source != nil {
		return d.Source.rows, d.Source.payload
	}
	n := uint64(d.Gen.Entities)
	return n * uint64(d.Profile.Rows()), n * uint64(d.Profile.Payload)
}

// Rest returns the blocks after the loaded part of a Source. Blocks without
// operations are left out, because their commits measure nothing.
func (d Dataset) Rest() Stream {
	return func(yield func(entity.Block, error) bool) {
		for b, err := range d.Source.Rest() {
			if (err != nil || len(b.Ops) > 0) && !yield(b, err) {
				return
			}
		}
	}
}

// Key returns the cache key of the data set: a hash of everything that the
// store depends on, including the engine's version, the SQL and the generator's
// first block.
func (d Dataset) Key() (string, error) {
	linked, err := d.Engine.Driver()
	if err != nil {
		return "", err
	}
	ddl, err := d.schema(string(linked.Info.Dialect))
	if err != nil {
		return "", err
	}
	sample, err := d.sample()
	if err != nil {
		return "", err
	}
	text, err := json.Marshal([]any{
		formatVersion, d.Engine, linked.Info, d.Layout, d.Profile, d.Gen.withDefaults(), ddl, sample, d.Source,
	})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%x", sha256.Sum256(text))[:keyLength], nil
}

// keyLength is how many hexadecimal digits of the hash are used as the key.
const keyLength = 32

// schema returns the SQL that makes the store.
func (d Dataset) schema(dialect string) (ddl []any, err error) {
	switch {
	case d.fillsItself():
		schema, err := schemas.GraphTables(d.Layout, dialect)
		return []any{schema.Tables, schema.Indexes}, err
	case d.events():
		schema, err := schemas.EventTables(dialect)
		return []any{schema.Tables, schema.Indexes}, err
	}
	schema, err := schemas.Entities(d.Layout, dialect)
	if err != nil {
		return nil, err
	}
	meta, err := schemas.MetaTables(dialect)
	return []any{schema.Tables, schema.Indexes, meta.Tables}, err
}

// sample returns the first event, or the digest of the first block with
// operations.
func (d Dataset) sample() (any, error) {
	if d.fillsItself() {
		return nil, nil
	}
	if d.events() {
		for e := range d.Source.Events() {
			return e, nil
		}
		return nil, nil
	}
	x := NewExpectation(d.Source != nil)
	for b, err := range d.followed(x) {
		if err != nil || len(b.Ops) > 0 {
			return x.head.Digest, err
		}
	}
	return x.head.Digest, nil
}

// empty returns the expectation of the store before its first block.
func (d Dataset) empty() (x *Expectation, err error) {
	if x = NewExpectation(d.Source != nil); x.whole {
		x.only, err = d.Source.keeps()
	}
	return x, err
}

// Expectation returns the store's expected contents, which can follow further
// blocks. It generates every entity, without payloads if there is no Source.
func (d Dataset) Expectation(r Ready) (*Expectation, error) {
	d.Profile = d.Profile.WithPayload(0)
	x, err := d.empty()
	if err != nil {
		return nil, err
	}
	for _, err := range d.followed(x) {
		if err != nil {
			return nil, err
		}
	}
	return x, x.setHead(r)
}

// followed streams the blocks; the expectation follows each one before it is
// yielded.
func (d Dataset) followed(x *Expectation) Stream {
	return func(yield func(entity.Block, error) bool) {
		for b, err := range d.blocks() {
			if err == nil {
				err = x.Apply(&b)
			}
			if !yield(b, err) {
				return
			}
		}
	}
}

// build creates the store at a URL, with the memory budget of its later use,
// and checks it.
func (d Dataset) build(ctx context.Context, rawURL string, use *store.Options) (r Ready, err error) {
	start := time.Now()
	db, err := store.Open(ctx, rawURL, &store.Options{Memory: cmp.Or(use, &store.Options{}).Memory})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	switch {
	case d.fillsItself():
		err = d.Source.Fill(ctx, db)
	case d.events():
		r, err = d.fillEvents(ctx, db)
	default:
		// DuckDB creates its indexes after loading, because they come out the
		// same. Other engines' indexes would be denser than a node's, which are
		// built row by row.
		late := db.Engine().Info().Dialect == driver.DuckDB
		var ents *store.Entities
		if ents, err = db.Entities(ctx, &store.EntityOptions{Layout: d.Layout, DeferIndexes: late}); err == nil {
			r, err = d.Fill(ctx, ents)
		}
	}
	if err == nil {
		err = FoldLog(ctx, db) // the log is not worth keeping and copying
	}
	if err != nil {
		return r, err
	}
	r.Seconds = time.Since(start).Seconds()
	return r, nil
}

// Fill loads the entities into an empty store and then checks its contents.
// Ready has the seconds that the loading took.
func (d Dataset) Fill(ctx context.Context, ents *store.Entities) (r Ready, err error) {
	x, err := d.empty()
	if err != nil {
		return r, err
	}
	rows, _ := d.amount()
	bar := d.startProgress("rows", rows)
	defer bar.Finish()
	start := time.Now()
	opts := &store.LoadOptions{Progress: func(store.Applied) { bar.Set(int64(x.counts.Rows())) }}
	if _, err := ents.Load(ctx, d.followed(x), opts); err != nil {
		return r, err
	}
	took := time.Since(start).Seconds()
	return Ready{Head: x.head.Number, Digest: x.head.Digest.String(), Counts: x.counts, Seconds: took}, x.Check(ctx, ents)
}

// eventBatch is the number of events in one append while loading.
const eventBatch = 5000

func (d Dataset) fillEvents(ctx context.Context, db *store.DB) (r Ready, err error) {
	evs, err := db.Events(ctx, nil)
	if err != nil {
		return r, err
	}
	bar := d.startProgress("events", 0)
	defer bar.Finish()
	n := uint64(0)
	var batch []event.Event
	flush := func() {
		if len(batch) > 0 && err == nil {
			_, err = evs.Append(ctx, batch, nil)
		}
		n, batch = n+uint64(len(batch)), batch[:0]
		bar.Set(int64(n))
	}
	for e := range d.Source.Events() {
		if batch = append(batch, e); len(batch) == eventBatch {
			if flush(); err != nil {
				break
			}
		}
	}
	if flush(); err != nil {
		return r, err
	}
	if r.Head, err = evs.Head(ctx); err == nil && r.Head != n {
		err = mismatch("head %d after %d events", r.Head, n)
	}
	return r, err
}
