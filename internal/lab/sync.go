package lab

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/graph"
	"github.com/varvedb/varve/internal/engine"
	"github.com/varvedb/varve/internal/filesync"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/feed"
)

// Operation is an occasional operation on a store.
type Operation func(l *Lab, ctx context.Context, layout string, r *Record) error

// Operated measures operations on the base profile with each layout; a key tells them apart. Each takes so many
// phases, and as long as loading the data so many times.
func Operated(name, key string, phases, loads float64, operations map[string]Operation) func(*Lab) ([]Variant, error) {
	return func(l *Lab) (list []Variant, _ error) {
		for _, layout := range l.LayoutsOr() {
			for _, value := range slices.Sorted(maps.Keys(operations)) {
				list = append(list, Variant{Name: name, Keys: l.OnBase(layout, l.Scale, key, value), Cost: baseCost(l.Scale, phases, loads), Run: func(ctx context.Context, r *Record) error { return operations[value](l, ctx, layout, r) }})
			}
		}
		return list, nil
	}
}

// FromTar writes the base profile into a block tar, and loads that.
func (l *Lab) FromTar(ctx context.Context, layout string, r *Record) error {
	d, err := l.Base(layout, l.Scale, ProductionBlock)
	if err != nil {
		return err
	}
	if err := l.roomToLoad(l.Scale); err != nil {
		return err
	}
	return l.WithNew(ctx, "", layout, l.StoreOptions(), r, func(cp *bench.Copy) error {
		path := besideOf(cp, "blocks.tar")
		err := filesync.Write(path, 0o600, func(f *os.File) error { return feed.NewTarWriter(f).WriteAll(ctx, d.Source.Blocks(), nil) })
		if err != nil {
			return err
		}
		source := *d.Source
		source.Blocks = func() iter.Seq2[entity.Block, error] { return feed.TarBlocks(path) }
		d.Source = &source
		ready, err := d.Fill(ctx, cp.Entities)
		if err != nil {
			return err
		}
		return r.Synced(ctx, cp.DB, ready.Counts.Rows(), time.Duration(ready.Seconds*float64(time.Second)))
	})
}

// Synced adds the time of receiving so many rows.
func (r *Record) Synced(ctx context.Context, db *store.DB, rows uint64, took time.Duration) error {
	r.Count = int64(rows)
	r.Put(took.Seconds(), "sync-s")
	r.Put(float64(rows)/took.Seconds(), "rows/s")
	return r.sizes(ctx, db, int(rows), "B/row")
}

// importArkiv imports a database such as Arkiv's sqlite-store makes.
func (l *Lab) importArkiv(ctx context.Context, layout string, r *Record) error {
	d, err := l.Base("arkiv", l.Scale, ProductionBlock)
	if err != nil {
		return err
	}
	if d.Engine, err = l.readsArkiv(); err != nil {
		return err
	}
	return l.withDataset(ctx, *d, l.StoreOptions(), new(Record), func(cp *bench.Copy) error {
		if err := asArkiv(ctx, cp); err != nil {
			return err
		}
		return l.WithNew(ctx, "", layout, l.StoreOptions(), r, func(to *bench.Copy) error {
			start := time.Now()
			done, err := to.Entities.Import(ctx, feed.Arkiv(ctx, cp.DB.Engine()), nil)
			took := time.Since(start)
			if err != nil {
				return err
			}
			if digest := done.Head.Digest.String(); digest != cp.Ready.Digest {
				return fmt.Errorf("%w: the digest of what was imported is %s, want %s", bench.ErrMismatch, digest, cp.Ready.Digest)
			}
			return r.Synced(ctx, to.DB, cp.Ready.Counts.Rows(), took)
		})
	})
}

// readsArkiv is an engine of this program that reads SQLite files, as Arkiv's are: that which is
// measured, if it does.
func (l *Lab) readsArkiv() (bench.Engine, error) {
	linked := driver.Linked()
	if own, err := l.Engine.Driver(); err == nil {
		linked = slices.Insert(linked, 0, own)
	}
	for _, d := range linked {
		if d.Info.Dialect == driver.SQLite && d.Info.Library != engine.Find(d.Name).Client {
			return bench.Engine{Name: d.Name}, nil
		}
	}
	return bench.Engine{}, fmt.Errorf("%w: no engine of this program reads SQLite files", ErrSkip)
}

// asArkiv gives a store of layout arkiv, which has the tables and rows of
// Arkiv's sqlite-store, the two other small tables of that store.
func asArkiv(ctx context.Context, cp *bench.Copy) error {
	s := graph.Store{DB: cp.DB}
	return s.Exec(ctx,
		"CREATE TABLE IF NOT EXISTS last_block (id INTEGER PRIMARY KEY, block INTEGER NOT NULL)",
		"CREATE TABLE IF NOT EXISTS schema_migrations (version INTEGER NOT NULL, dirty INTEGER NOT NULL)",
		"DELETE FROM schema_migrations",
		"INSERT INTO schema_migrations (version, dirty) VALUES (2, 0)",
		fmt.Sprintf("INSERT OR REPLACE INTO last_block (id, block) VALUES (1, %d)", cp.Ready.Head),
	)
}
