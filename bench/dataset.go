package bench

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"iter"
	"time"

	"github.com/varvedb/varve/schemas"
	"github.com/varvedb/varve/store"
)

// formatVersion is part of every key. Raise it when stores are built otherwise
// from the same parameters, as by another layout of rows under the same SQL.
const formatVersion = 1

// Dataset is a store of generated entities, built by Load.
type Dataset struct {
	Engine  Engine     `json:"engine"`
	Layout  string     `json:"layout"`
	Profile Profile    `json:"profile"`
	Gen     GenOptions `json:"gen"` // no entities: an empty store

	// Source, if given, is what the store holds instead of entities of Profile
	// and Gen.
	Source *Source `json:"source,omitempty"`
}

// blocks streams what the store holds.
func (d Dataset) blocks() iter.Seq2[store.Block, error] {
	if d.Source != nil {
		return d.Source.Blocks()
	}
	return Blocks(d.Profile, d.Gen)
}

// lean streams the blocks with the smallest payloads.
func (d Dataset) lean() iter.Seq2[store.Block, error] {
	if d.Source != nil && d.Source.lean != nil {
		return d.Source.lean()
	}
	d.Profile = d.Profile.WithPayload(0)
	return d.blocks()
}

// Key returns the name of the data set in a cache: a hash of everything that it
// depends on, the engine's version, the SQL and the generator's first block
// included.
func (d Dataset) Key() (string, error) {
	linked, err := d.Engine.driver()
	if err != nil {
		return "", err
	}
	dialect := string(linked.Info.Dialect)
	schema, err := schemas.Entities(d.Layout, dialect)
	if err != nil {
		return "", err
	}
	meta, err := schemas.MetaTables(dialect)
	if err != nil {
		return "", err
	}
	sample, err := d.sample()
	if err != nil {
		return "", err
	}
	parts := []any{
		formatVersion, d.Engine, linked.Info, d.Layout, d.Profile, d.Gen.withDefaults(),
		schema.Tables, schema.Indexes, meta.Tables, sample.String(),
	}
	if d.Source != nil {
		parts = append(parts, d.Source)
	}
	return hashParts(parts...)
}

// hashParts returns the name of what depends on all the parts and nothing else.
func hashParts(parts ...any) (string, error) {
	text, err := json.Marshal(parts)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])[:keyLength], nil
}

// sample returns the digest of the first block that changes anything.
func (d Dataset) sample() (store.Digest, error) {
	x := NewExpectation(d.Source != nil)
	for b, err := range d.blocks() {
		if err == nil {
			err = x.Apply(&b)
		}
		if err != nil || len(b.Ops) > 0 {
			return x.head.Digest, err
		}
	}
	return x.head.Digest, nil
}

// empty returns the expectation of the store before its first block.
func (d Dataset) empty() (*Expectation, error) {
	if d.Source == nil {
		return NewExpectation(false), nil
	}
	x := NewExpectation(true)
	var err error
	x.only, err = d.Source.keeps()
	return x, err
}

// Expectation returns what the store holds, to be continued. It generates every
// entity, without payload where there is no Source.
func (d Dataset) Expectation(r Ready) (*Expectation, error) {
	x, err := d.empty()
	if err != nil {
		return nil, err
	}
	d.Profile = d.Profile.WithPayload(0)
	for b, err := range d.blocks() {
		if err == nil {
			err = x.Apply(&b)
		}
		if err != nil {
			return nil, err
		}
	}
	return x, x.setHead(r)
}

// build makes the store in a directory and checks it.
func (d Dataset) build(ctx context.Context, dir string) (r Ready, err error) {
	start := time.Now()
	db, err := store.Open(ctx, d.Engine.URL(dir), nil)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	ents, err := db.Entities(ctx, store.EntityOptions{Layout: d.Layout})
	if err != nil {
		return r, err
	}
	x, err := d.empty()
	if err != nil {
		return r, err
	}
	follow := func(yield func(store.Block, error) bool) {
		for b, err := range d.blocks() {
			if err == nil {
				err = x.Apply(&b)
			}
			if !yield(b, err) {
				return
			}
		}
	}
	if _, err := ents.Load(ctx, follow, store.LoadOptions{}); err != nil {
		return r, err
	}
	if err := x.Check(ctx, ents); err != nil {
		return r, err
	}
	// A log that nobody needs is not worth keeping and copying.
	if err := FoldLog(ctx, db); err != nil {
		return r, err
	}
	info := db.Engine().Info()
	return Ready{
		Spec: d, Engine: info.Name + " " + info.Version,
		Head: x.head.Block, Digest: x.head.Digest.String(), Counts: x.counts,
		Seconds: time.Since(start).Seconds(),
	}, nil
}
