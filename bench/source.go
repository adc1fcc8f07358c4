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

// Source is a deterministic history in two parts: what a data set holds, and
// what comes after it, to be written while something is measured.
type Source struct {
	// Name tells sources apart in the keys of data sets and for people: it has every parameter.
	Name string `json:"name"`

	// Blocks streams the first part, and Rest what follows, nil when nothing
	// does. Both give the same blocks each time.
	Blocks func() iter.Seq2[entity.Block, error] `json:"-"`
	Rest   func() iter.Seq2[entity.Block, error] `json:"-"`

	// Events, if given, streams what a store of events holds, in place of Blocks.
	Events func() iter.Seq[event.Event] `json:"-"`

	// Fill, if given, fills an empty database with tables of its own, the layout's of
	// schemas.GraphTables, in place of Blocks.
	Fill func(ctx context.Context, db *store.DB) error `json:"-"`

	// Changing is how many blocks have operations in what a TarSource was made of.
	Changing int `json:"-"`

	follow    uint64 // the last block of a Rest that is known to keeps; 0 is all
	keepsNone bool   // no operation keeps what an entity holds: none is an ExtendBTL or ChangeOwner

	rows, payload uint64 // about, of Blocks: the rows of all versions, and bytes
}

// keeps returns the entities whose content some operation keeps: of these an expectation must remember all.
func (s *Source) keeps() (map[entity.Key]bool, error) {
	keys := map[entity.Key]bool{}
	for _, stream := range []func() iter.Seq2[entity.Block, error]{s.Blocks, s.Rest} {
		if stream == nil || s.keepsNone {
			continue
		}
		for b, err := range until(stream(), cmp.Or(s.follow, math.MaxUint64)) {
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

// MendozaSource returns a history of the base profile of package scaler at a scale relative to 800,000 entities. Of
// its time the data set holds a share, above 0 and up to 1; what comes after it is Source.Rest, which goes on
// with copies of the whole history under fresh keys, because a fast engine would come to its end before the time
// of a phase is up. Expectations go on to the end of the history. Blocks of the
// profile, of which most are empty or create one entity, are merged into blocks of about perBlock operations, as
// Merged does; 0 leaves them as they are. It fails with store.ErrInvalid when a parameter is out of range.
func MendozaSource(scale float64, seed uint64, perBlock int, share float64) (*Source, error) {
	if !(share > 0 && share <= 1) || perBlock < 0 {
		return nil, fmt.Errorf("mendoza source: %w: share %v, want above 0 and up to 1; %d operations a block, want none or more",
			store.ErrInvalid, share, perBlock)
	}
	opts := scaler.Options{Scale: scale, Seed: seed}
	plan, err := scaler.Plan(scaler.Mendoza(), opts)
	if err != nil {
		return nil, fmt.Errorf("mendoza source: %w: %w", store.ErrInvalid, err)
	}
	part := func(n uint64) uint64 { return uint64(share * float64(n)) }
	m := mendoza{opts, perBlock, plan, plan.FirstBlock - 1 + part(plan.Blocks)}
	return &Source{
		Name:   fmt.Sprintf("mendoza scale=%v seed=%d ops=%d share=%v", scale, seed, perBlock, share),
		Blocks: m.first, Rest: m.rest, rows: part(plan.Rows()), payload: part(plan.PayloadRowBytes),
		follow: plan.LastBlock,
	}, nil
}

// mendoza is the two parts of a MendozaSource.
type mendoza struct {
	opts     scaler.Options
	perBlock int
	plan     scaler.Totals
	cut      uint64 // last block of the first part
}

func (m mendoza) first() iter.Seq2[entity.Block, error] {
	blocks := until(scaler.Stream(scaler.Mendoza(), m.opts), m.cut)
	if m.perBlock == 0 {
		return blocks
	}
	return Merged(blocks, m.perBlock)
}

// rest goes on merging with what the first part left behind, which it learns
// from the same operations without payloads.
func (m mendoza) rest() iter.Seq2[entity.Block, error] {
	blocks := m.endless()
	if m.perBlock == 0 {
		return blocks
	}
	return func(yield func(entity.Block, error) bool) {
		g := newMerger(m.perBlock)
		for b, err := range until(scaler.Stream(bare(scaler.Mendoza()), m.opts), m.cut) {
			if err != nil {
				yield(entity.Block{}, err)
				return
			}
			g.pass(&b)
		}
		g.run(blocks, yield)
	}
}

// endless streams the blocks of the profile after the first part, and then
// copies of all its blocks.
func (m mendoza) endless() iter.Seq2[entity.Block, error] {
	from := m.opts
	from.From = m.cut + 1
	whole := func() iter.Seq2[entity.Block, error] { return scaler.Stream(scaler.Mendoza(), m.opts) }
	copies := scaler.ScaleOptions{Factor: 1, Seed: m.opts.Seed}
	return func(yield func(entity.Block, error) bool) {
		for b, err := range scaler.Stream(scaler.Mendoza(), from) {
			if !yield(b, err) {
				return
			}
		}
		scaler.Continue(whole, copies, m.plan.FirstBlock, m.plan.LastBlock)(yield)
	}
}

// bare returns the profile with the smallest payloads. All else stays as it is, since each value is drawn for itself.
func bare(p scaler.Profile) scaler.Profile {
	for i := range p.Kinds {
		p.Kinds[i].Payload.Size = scaler.Histogram{{Permille: 1000, From: scaler.MinPayload, To: scaler.MinPayload}}
	}
	return p
}

// until streams the blocks up to a number.
func until(blocks iter.Seq2[entity.Block, error], last uint64) iter.Seq2[entity.Block, error] {
	return func(yield func(entity.Block, error) bool) {
		for b, err := range blocks {
			if err == nil && b.Number > last || !yield(b, err) {
				return
			}
		}
	}
}

// centreRows are about those of a node or a workload.
const centreRows = 20

// DataCentreSource returns the data centres of a model in their initial state. The rest is load
// without end, up to the highest block number.
func DataCentreSource(m *dcseed.Model) *Source {
	next := m.FirstLoadBlock()
	return &Source{
		Name:      fmt.Sprintf("dc %+v", m.Config()),
		Blocks:    func() iter.Seq2[entity.Block, error] { return m.Blocks(dcseed.FirstBlock, next-1) },
		Rest:      func() iter.Seq2[entity.Block, error] { return m.Blocks(next, entity.MaxBlockNumber) },
		keepsNone: true, rows: m.Entities() * centreRows, payload: m.Entities() * uint64(m.Config().Payload),
	}
}

// TarSource returns the history of a block tar, with so many times its entities, as scaler.Scale makes them: a
// data set holds all of it, by a factor of 1 the blocks of the tar as they are. The rest is copies of the tar's
// own blocks with fresh keys, whole and one after the other, without end, so that a small tar too can be
// committed for as long as one likes. Expectations go on for the length of one copy. The name follows from what
// is in the tar, which is read once: the cache keeps what it comes to. It fails with store.ErrInvalid for a
// factor of zero and where no block of the tar has an operation.
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
	blocks := func() iter.Seq2[entity.Block, error] { return wholeHistory(feed.TarBlocks(path)) }
	return &Source{
		Name:     fmt.Sprintf("tar %x factor=%d seed=%d", t.Sum[:16], factor, seed),
		Blocks:   func() iter.Seq2[entity.Block, error] { return scaler.Scale(blocks, o) },
		Rest:     func() iter.Seq2[entity.Block, error] { return scaler.Continue(blocks, o, t.First, t.Last) },
		Changing: t.Changing, rows: factor * t.Rows, payload: factor * t.Payload,
		follow: t.Last + factor*(t.Last-t.First+1),
	}, nil
}

// wholeHistory takes the blocks for all that there was, because a workload may
// read each of them: it measures operations, whoever has forgotten earlier ones.
func wholeHistory(blocks iter.Seq2[entity.Block, error]) iter.Seq2[entity.Block, error] {
	return func(yield func(entity.Block, error) bool) {
		for b, err := range blocks {
			b.Horizon = 0
			if !yield(b, err) {
				return
			}
		}
	}
}

// Tar is what a block tar comes to.
type Tar struct {
	Sum                     []byte // of the file
	First, Last             uint64
	Blocks, Changing        int    // Changing are those with operations
	Entities, Rows, Payload uint64 // as Written counts them
}

// Tar reads a block tar, unless the cache has what one of this path, size and time comes to.
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
