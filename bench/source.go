package bench

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"os"
	"path/filepath"

	"github.com/varvedb/varve/dcseed"
	"github.com/varvedb/varve/internal/filesync"
	"github.com/varvedb/varve/scaler"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/event"
	"github.com/varvedb/varve/store/feed"
)

// Stream is a sequence of blocks in order. It ends with its first error.
type Stream = iter.Seq2[entity.Block, error]

// Source is a deterministic history in two parts: a data set, and the blocks
// after it, to be written during a measurement.
type Source struct {
	// Name identifies the source in the keys of data sets and for people; it
	// includes every parameter.
	Name string `json:"name"`

	// Blocks streams the first part, and Rest the blocks after it (nil if there
	// are none). Both yield the same blocks each time.
	Blocks scaler.Source `json:"-"`
	Rest   scaler.Source `json:"-"`

	// Events, if given, streams the events of a store, in place of Blocks.
	Events func() iter.Seq[event.Event] `json:"-"`

	// Fill, if given, fills an empty database with the tables of
	// schemas.GraphTables, in place of Blocks.
	Fill func(ctx context.Context, db *store.DB) error `json:"-"`

	// Changing is how many blocks with operations the tar of a TarSource has.
	Changing int `json:"-"`

	follow    uint64 // last block of Rest that keeps examines; 0 is all
	keepsNone bool   // no operation is an ExtendBTL or ChangeOwner

	rows, payload uint64 // estimates for Blocks: rows of all versions, and bytes of payloads
}

// keeps returns the entities for which some operation keeps the content. An
// expectation must remember these whole.
func (s *Source) keeps() (map[entity.Key]bool, error) {
	keys := map[entity.Key]bool{}
	for _, stream := range []scaler.Source{s.Blocks, s.Rest} {
		if stream == nil || s.keepsNone {
			continue
		}
		for b, err := range scaler.Until(stream(), cmp.Or(s.follow, math.MaxUint64)) {
			if err != nil {
				return nil, err
			}
			for i := range b.Ops {
				if op := &b.Ops[i]; op.Kind == entity.ExtendBTL || op.Kind == entity.ChangeOwner {
					keys[op.Key] = true
				}
			}
		}
	}
	return keys, nil
}

// MendozaSource returns a history of the base profile of package scaler, at a
// scale relative to 800,000 entities. It has the two parts of scaler.Split; the
// data set holds the first. The second part is endless, so that a fast engine
// does not run out of blocks before the end of a phase. Expectations cover it
// up to the end of the profile's history. It fails with store.ErrInvalid when a
// parameter is out of range.
func MendozaSource(scale float64, seed uint64, perBlock int, share float64) (*Source, error) {
	parts, err := scaler.Split(scaler.Mendoza(), scaler.Options{Scale: scale, Seed: seed}, share, perBlock)
	if err != nil {
		return nil, fmt.Errorf("mendoza source: %w: %w", store.ErrInvalid, err)
	}
	part := func(n uint64) uint64 { return uint64(share * float64(n)) }
	return &Source{
		Name:   fmt.Sprintf("mendoza scale=%v seed=%d ops=%d share=%v", scale, seed, perBlock, share),
		Blocks: parts.First, Rest: parts.Rest, rows: part(parts.Rows()), payload: part(parts.PayloadRowBytes),
		follow: parts.LastBlock,
	}, nil
}

// centreRows is the approximate number of rows of a node or a workload.
const centreRows = 20

// DataCentreSource returns the data centres of a model in their initial state.
// The rest is the model's load, up to the highest block number.
func DataCentreSource(m *dcseed.Model) *Source {
	next := m.FirstLoadBlock()
	return &Source{
		Name:      fmt.Sprintf("dc %+v", m.Config()),
		Blocks:    func() Stream { return m.Blocks(dcseed.FirstBlock, next-1) },
		Rest:      func() Stream { return m.Blocks(next, entity.MaxBlockNumber) },
		keepsNone: true, rows: m.Entities() * centreRows, payload: m.Entities() * uint64(m.Config().Payload),
	}
}

// TarSource returns the history of a block tar, with its entities multiplied by
// factor as in scaler.Scale. The data set holds all of it; with a factor of 1
// these are the blocks of the tar as they are. The rest is an endless sequence
// of whole copies of the tar's blocks with fresh keys, so that even a small tar
// can be committed for any time. Expectations cover the length of one copy. The
// name is derived from the contents of the tar, which is read once: the cache
// keeps its counts. It fails with store.ErrInvalid for a factor of zero and if
// no block of the tar has an operation.
func TarSource(cache *Cache, path string, factor, seed uint64) (*Source, error) {
	t, err := cache.Tar(path)
	switch {
	case err != nil:
	case factor < 1:
		err = fmt.Errorf("%w: factor 0, want 1 or more", store.ErrInvalid)
	case t.Changing == 0:
		err = fmt.Errorf("%w: no block has an operation", store.ErrInvalid)
	}
	if err != nil {
		return nil, fmt.Errorf("source %s: %w", path, err)
	}
	o := scaler.ScaleOptions{Factor: factor, Seed: seed}
	blocks := func() Stream { return wholeHistory(feed.TarBlocks(path)) }
	return &Source{
		Name:     fmt.Sprintf("tar %x factor=%d seed=%d", t.Sum[:16], factor, seed),
		Blocks:   func() Stream { return scaler.Scale(blocks, o) },
		Rest:     func() Stream { return scaler.Continue(blocks, o, t.First, t.Last) },
		Changing: t.Changing, rows: factor * t.Rows, payload: factor * t.Payload,
		follow: t.Last + factor*(t.Last-t.First+1),
	}, nil
}

// wholeHistory removes the horizon of the blocks, because a workload may read
// each of them, even if an earlier history was pruned.
func wholeHistory(blocks Stream) Stream {
	return func(yield func(entity.Block, error) bool) {
		for b, err := range blocks {
			b.Horizon = 0
			if !yield(b, err) {
				return
			}
		}
	}
}

// Tar has the counts of a block tar.
type Tar struct {
	Sum                     []byte // of the file
	First, Last             uint64
	Blocks, Changing        int    // Changing are those with operations
	Entities, Rows, Payload uint64 // as Written counts them
}

// Tar reads a block tar, unless the cache has the counts of a tar with this
// path, size and time.
func (c *Cache) Tar(path string) (t Tar, err error) {
	path, err = filepath.Abs(path)
	if err != nil {
		return t, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return t, err
	}
	key := sha256.Sum256(fmt.Appendln(nil, path, info.Size(), info.ModTime().UnixNano()))
	kept := c.path(fmt.Sprintf("scan-%x.json", key[:keyLength/2]))
	if text, err := os.ReadFile(kept); err == nil && json.Unmarshal(text, &t) == nil {
		return t, nil
	}
	if t, err = readTar(path); err != nil {
		return t, err
	}
	text, err := json.Marshal(t)
	return t, errors.Join(err, filesync.Replace(kept, text, 0o644))
}

func readTar(path string) (t Tar, err error) {
	f, err := os.Open(path)
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	sum, begun := sha256.New(), false
	whole := io.TeeReader(f, sum)
	for b, err := range feed.ReadTar(whole) {
		if err != nil {
			return t, err
		}
		if !begun {
			t.First, begun = b.Number, true
		}
		t.Last = b.Number
		t.Blocks++
		if len(b.Ops) > 0 {
			t.Changing++
		}
		entities, rows := Written(&b)
		t.Entities, t.Rows = t.Entities+uint64(entities), t.Rows+uint64(rows)
		for i := range b.Ops {
			t.Payload += uint64(len(b.Ops[i].Content))
		}
	}
	_, err = io.Copy(io.Discard, whole)
	t.Sum = sum.Sum(nil)
	return t, err
}
