package lab

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/graph"
	"github.com/varvedb/varve/internal/engine"
	"github.com/varvedb/varve/internal/filesync"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/feed"
)

// Operated plans operations on the base profile for each layout; a key names
// the operation. Phases and loads estimate the cost of each.
func Operated(name, key string, phases, loads float64, operations map[string]Run) func(*Lab) ([]Variant, error) {
	return func(l *Lab) ([]Variant, error) {
		return across(l.LayoutsOr(), slices.Sorted(maps.Keys(operations)), func(layout, value string) Variant {
			return Variant{Name: name, Keys: l.OnBase(layout, l.Scale, key, value), Cost: BaseCost(l.Scale, phases, loads), Run: operations[value]}
		})
	}
}

// FromTar writes the base profile into a block tar, and measures loading that.
func (t *Trial) FromTar(ctx context.Context) error {
	d, err := t.base()
	if err == nil {
		err = t.roomToLoad(t.Scale)
	}
	if err != nil {
		return err
	}
	return t.WithLayout(ctx, func() error {
		path := t.file("blocks.tar")
		err := filesync.Write(path, 0o600, func(f *os.File) error { return feed.NewTarWriter(f).WriteAll(ctx, d.Source.Blocks(), nil) })
		if err != nil {
			return err
		}
		source := *d.Source
		source.Blocks = func() bench.Stream { return feed.TarBlocks(path) }
		d.Source = &source
		ready, err := d.Fill(ctx, t.Entities)
		if err != nil {
			return err
		}
		return t.Synced(ctx, ready.Counts.Rows(), time.Duration(ready.Seconds*float64(time.Second)))
	})
}

// Synced adds the time of receiving a number of rows.
func (t *Trial) Synced(ctx context.Context, rows uint64, took time.Duration) error {
	t.Count = int64(rows)
	t.Put(took.Seconds(), "sync-s")
	t.Put(float64(rows)/took.Seconds(), "rows/s")
	return t.size(ctx, int(rows), "B/row")
}

// importArkiv measures importing a database in the form of Arkiv's
// sqlite-store.
func (t *Trial) importArkiv(ctx context.Context) error {
	d, err := t.Base("arkiv", t.Scale, ProductionBlock)
	if err != nil {
		return err
	}
	if d.Engine, err = t.readsArkiv(); err != nil {
		return err
	}
	of := t.trial(new(Record))
	return of.withDataset(ctx, *d, func() error {
		if err := asArkiv(ctx, of.Copy); err != nil {
			return err
		}
		return t.WithLayout(ctx, func() error {
			start := time.Now()
			done, err := t.Entities.Import(ctx, feed.Arkiv(ctx, of.DB.Engine()), nil)
			took := time.Since(start)
			if err != nil {
				return err
			}
			if digest := done.Head.Digest.String(); digest != of.Ready.Digest {
				return fmt.Errorf("%w: the digest of what was imported is %s, want %s", bench.ErrMismatch, digest, of.Ready.Digest)
			}
			return t.Synced(ctx, of.Ready.Counts.Rows(), took)
		})
	})
}

// readsArkiv returns an engine of this program that can read Arkiv's SQLite
// files: the measured engine, if it can.
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

// asArkiv adds to a store of layout arkiv the two other small tables of Arkiv's
// sqlite-store. It already has the same main tables and rows.
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
