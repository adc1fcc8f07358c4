package bench

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
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
	sample := NewExpectation(false)
	for b, err := range Blocks(d.Profile, d.Gen) {
		if err == nil {
			err = sample.Apply(&b)
		}
		if err != nil {
			return "", err
		}
		break
	}
	text, err := json.Marshal([]any{
		formatVersion, d.Engine, linked.Info, d.Layout, d.Profile, d.Gen.withDefaults(),
		schema.Tables, schema.Indexes, meta.Tables, sample.Head().Digest.String(),
	})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])[:keyLength], nil
}

// Expectation returns what the store holds, to be continued. It generates every
// entity, without payload.
func (d Dataset) Expectation(r Ready) (*Expectation, error) {
	x := NewExpectation(false)
	for b, err := range Blocks(d.Profile.WithPayload(0), d.Gen) {
		if err == nil {
			err = x.Apply(&b)
		}
		if err != nil {
			return nil, err
		}
	}
	digest, err := hex.DecodeString(r.Digest)
	if err != nil || len(digest) != len(x.head.Digest) {
		return nil, mismatch("recorded digest %q", r.Digest)
	}
	x.head.Digest = store.Digest(digest)
	return x, nil
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
	x := NewExpectation(false)
	follow := func(yield func(store.Block, error) bool) {
		for b, err := range Blocks(d.Profile, d.Gen) {
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
	if _, err := db.Checkpoint(ctx, true); err != nil && !errors.Is(err, store.ErrUnsupported) {
		return r, err
	}
	info := db.Engine().Info()
	return Ready{
		Spec: d, Engine: info.Name + " " + info.Version,
		Head: x.head.Block, Digest: x.head.Digest.String(), Counts: x.counts,
		Seconds: time.Since(start).Seconds(),
	}, nil
}
