package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/varvedb/varve/internal/layout"
	"github.com/varvedb/varve/schemas"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
)

// EntityOptions select the layout of the entities and the rules for operations.
type EntityOptions struct {
	// Layout is one of schemas.Layouts, such as compact or arkiv. Empty means
	// the layout in the URL, else the layout of the existing store, else
	// compact.
	Layout string

	// ExtendAdds makes ExtendBTL add to the old expiration instead of counting
	// from the block, as Arkiv's later stores do. It is recorded in the store.
	ExtendAdds bool

	// DeferIndexes creates a new store without the indexes that only queries
	// need, for a bulk load. Flush creates them; Load and Import end with it.
	// To continue an interrupted load, open the store with DeferIndexes again;
	// if it is opened without, the indexes are created first.
	DeferIndexes bool

	// Backlog bounds the changes that a layout such as compact has not merged
	// yet. They are held in memory, without payloads. Zero means the value in
	// the URL, else the layout's default. It is not recorded.
	Backlog int
}

// Entities is the entity store of a database. Its methods may be called from
// several goroutines: writes queue, and reads run concurrently with them.
type Entities struct {
	db     *DB
	layout layout.Layout
	rules  entity.Rules

	opts       EntityOptions // of the call that opened it
	backlog    int           // EntityOptions.Backlog
	maintainer *maintainer   // nil when the layout puts nothing off
	deferred   atomic.Bool   // EntityOptions.DeferIndexes left indexes out
	lastHead   atomic.Uint64 // the number of the head that was seen last

	mu       sync.Mutex
	written  uint64 // versions since the planner's statistics were gathered
	analyzed uint64 // versions when the statistics were gathered; see grown
}

// Entities opens the entity store, and creates it if the database has none. The
// first call fixes the options while the database is open; later calls must
// leave them out or repeat them. It fails with ErrLayout when the database
// holds another layout, or other tables and no store, and with ErrInvalid when
// an option is malformed or differs from the first call's.
func (db *DB) Entities(ctx context.Context, options *EntityOptions) (e *Entities, err error) {
	defer wrap(&err, "open the entities of "+db.name)
	opts := EntityOptions{}
	if options != nil {
		opts = *options
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	name := cmp.Or(opts.Layout, db.layout)
	if e = db.entities; e == nil {
		if e, err = db.openEntities(ctx, name, opts); err != nil {
			return nil, err
		}
		if err := e.startMaintainer(ctx); err != nil {
			e.maintainer.close()
			return nil, err
		}
		db.entities = e
	} else if err := e.sameOptions(opts); err != nil {
		return nil, err
	}
	if name != "" && name != e.layout.Name() {
		return nil, layoutMismatch(e.layout.Name(), name)
	}
	return e, nil
}

// sameOptions refuses options that differ from the first call's. The layout is
// compared by its name, which may come from the record.
func (e *Entities) sameOptions(opts EntityOptions) error {
	return errors.Join(
		sameOption("Backlog", opts.Backlog, e.backlog),
		sameOption("ExtendAdds", opts.ExtendAdds, e.rules.ExtendAdds),
		sameOption("DeferIndexes", opts.DeferIndexes, e.opts.DeferIndexes || e.db.ro), // a reader creates no indexes
	)
}

// sameOption returns an error when an option is given and differs from the open
// store's, because a database has only one entity store.
func sameOption[T comparable](name string, given, has T) error {
	var zero T
	if given == zero || given == has {
		return nil
	}
	return fmt.Errorf("%w: the store is open with %s %v, and another call asks for %v; "+
		"give all options in the first call, or close the database before", ErrInvalid, name, has, given)
}

func layoutMismatch(has, asked string) error {
	return driver.Of(ErrLayout, fmt.Errorf("the store has layout %q, asked for was %q; leave the layout out, or import the store into a new one", has, asked))
}

func (db *DB) openEntities(ctx context.Context, name string, opts EntityOptions) (*Entities, error) {
	if opts.Backlog < 0 {
		return nil, fmt.Errorf("%w: a backlog of %d, want zero or more", ErrInvalid, opts.Backlog)
	}
	e := &Entities{db: db, opts: opts, backlog: cmp.Or(opts.Backlog, db.backlog)}
	recorded, err := db.recorded(ctx)
	if err != nil {
		return nil, err
	}
	if err := db.checkComplete(ctx); err != nil {
		return nil, err
	}
	if recorded[metaLayout] == "" {
		if recorded, err = e.create(ctx, name, opts); err != nil {
			return nil, err
		}
	}
	if err := e.check(recorded, name, opts.ExtendAdds); err != nil {
		return nil, err
	}
	if err := db.missing(ctx, append([]*driver.Table{metaTable, blocksTable}, e.layout.Tables()...)...); err != nil {
		return nil, err
	}
	if format := formatOf(e.layout.Name()); recorded[metaFormat] != format && !db.ro {
		// Record the new format, so that older programs refuse the store from
		// now on.
		if err := db.write(ctx, func(ctx context.Context, tx driver.Tx) error {
			return db.meta.set(ctx, tx, metaFormat, format)
		}); err != nil {
			return nil, err
		}
	}
	if err := e.checkSpread(ctx); err != nil {
		return nil, err
	}
	e.deferred.Store(recorded[metaIndexes] != "" && !db.ro) // a reader does not build them
	if !opts.DeferIndexes {
		if err := e.buildIndexes(ctx); err != nil {
			return nil, err
		}
	}
	if err := e.db.tune(ctx, e.layout.Tables()); err != nil {
		return nil, err
	}
	return e, e.analyzeAtOpen(ctx)
}

// create creates the tables and returns the recorded values.
func (e *Entities) create(ctx context.Context, name string, opts EntityOptions) (map[string]string, error) {
	if e.db.ro {
		return nil, fmt.Errorf("%w; a database of Arkiv's is read by varve import", errNoStore)
	}
	if err := e.use(cmp.Or(name, schemas.DefaultLayout), opts.ExtendAdds); err != nil {
		return nil, err
	}
	values := map[string]string{
		metaFormat: formatOf(e.layout.Name()), metaLayout: e.layout.Name(), metaRules: rulesName(opts.ExtendAdds),
	}
	if opts.DeferIndexes {
		values[metaIndexes] = "deferred"
	}
	return e.db.create(ctx, metaLayout, values, func(ctx context.Context, tx driver.Tx) error {
		return e.layout.Create(ctx, tx, opts.DeferIndexes)
	})
}

func (e *Entities) check(recorded map[string]string, name string, extendAdds bool) error {
	if err := checkFormat(recorded); err != nil {
		return err
	}
	if err := checkRecorded(recorded); err != nil {
		return err
	}
	if has := recorded[metaLayout]; name != "" && name != has {
		return layoutMismatch(has, name)
	}
	if has := recorded[metaRules]; extendAdds && has != rulesName(true) {
		return driver.Of(ErrLayout, fmt.Errorf("in this store ExtendBTL counts from the %s", has))
	}
	return e.use(recorded[metaLayout], recorded[metaRules] == rulesName(true))
}

// checkSpread refuses a store of a single machine if its tables are spread over
// several. The engine refuses the opposite case.
func (e *Entities) checkSpread(ctx context.Context) error {
	if !e.db.engine.Capabilities().Spreads {
		return nil
	}
	return e.db.read(ctx, func(ctx context.Context, q driver.Querier) error {
		tables, err := e.db.meta.columns(ctx, q)
		if err == nil && tables["varve_commit"] == nil {
			err = driver.Of(ErrLayout, errors.New("the store's tables are not spread over machines, and the URL asks for it; leave that parameter out, or make a new store with it and import this one"))
		}
		return err
	})
}

func rulesName(extendAdds bool) string {
	if extendAdds {
		return "expiration"
	}
	return "block"
}

// use sets the layout and the rules.
func (e *Entities) use(name string, extendAdds bool) error {
	schema, err := schemas.Entities(name, string(e.db.engine.Info().Dialect))
	if err != nil {
		return driver.Of(ErrLayout, err)
	}
	caps := e.db.engine.Capabilities()
	if caps.Spreads && len(schema.Spread) == 0 {
		return fmt.Errorf("%w: layout %s on several machines; choose another, or leave out the URL's parameter that asks for them", ErrUnsupported, name)
	}
	e.layout = newLayout(schema, e.db.engine.Info().Dialect, caps, e.backlog)
	e.rules = entity.Rules{ExtendAdds: extendAdds}
	return nil
}

// Layout returns the layout's name.
func (e *Entities) Layout() string { return e.layout.Name() }

// Temporal reports whether past blocks can be read and rewound to.
func (e *Entities) Temporal() bool { return e.layout.Temporal() }

// ExtendAdds reports whether ExtendBTL adds to the old expiration; see
// EntityOptions.
func (e *Entities) ExtendAdds() bool { return e.rules.ExtendAdds }

// Head returns the last block.
func (e *Entities) Head(ctx context.Context) (BlockHeader, error) {
	return inView(ctx, e.db, e.db.meta.head)
}

// Summary has the counts of a store.
type Summary struct {
	Layout  string `json:"layout"`
	Origin  string `json:"origin,omitempty"` // see Entities.SetOrigin
	Head    uint64 `json:"head"`
	Digest  string `json:"digest"`
	First   uint64 `json:"first_block"`
	Blocks  uint64 `json:"blocks"`
	Horizon uint64 `json:"horizon"`  // oldest block that can be read
	Live    uint64 `json:"entities"` // visible at the head

	Tables map[string]uint64 `json:"tables"` // rows of each
}

// Summary counts the entities, versions and blocks. It reads every table.
func (e *Entities) Summary(ctx context.Context) (s Summary, err error) {
	s.Layout = e.layout.Name()
	err = e.db.readBulk(ctx, func(ctx context.Context, q driver.Querier) error {
		head, horizon, err := e.db.meta.headAndHorizon(ctx, q)
		if err != nil {
			return err
		}
		s.Head, s.Digest, s.Horizon = head.Number, head.Digest.String(), horizon
		if s.Origin, err = e.db.meta.get(ctx, q, metaOrigin); err != nil {
			return err
		}
		if s.First, s.Blocks, err = e.db.meta.blocks(ctx, q); err != nil {
			return err
		}
		view, err := e.layout.View(ctx, q, head.Number)
		if err != nil {
			return err
		}
		if s.Live, err = view.Count(ctx, nil); err != nil {
			return err
		}
		tables, err := view.Rows(ctx)
		s.Tables = make(map[string]uint64, len(tables))
		for _, t := range tables {
			s.Tables[t.Table] = t.Rows
		}
		return err
	})
	return s, err
}
