package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/varvedb/varve/internal/eventlog"
	"github.com/varvedb/varve/schemas"
	"github.com/varvedb/varve/store/driver"
)

// defaultEventLayout is that of new events for which none is named.
const defaultEventLayout = "tags"

// What is recorded of the event store.
const (
	metaEventLayout = "events.layout" // name of the layout
	metaEventFormat = "events.format" // version of its tables
)

// eventFormat changes when the tables of a layout do. Version 1 wrote the postings
// of an event together with it. Version 2 had no checksums: such a store is read
// and goes on without them.
// A store becomes of version 4 when its first events are truncated.
const (
	eventFormat          = "3"
	eventFormatUnsummed  = "2"
	eventFormatTruncated = "4"
)

// EventOptions say how the events of a database lie and how appends are queued.
// The zero value is usable.
type EventOptions struct {
	// Layout names the SQL layout: "tags", or on Postgres also "gin". Empty
	// means the one of the URL, else the one that the database has, else "tags".
	Layout string

	// Queue bounds the appends that wait for the writer; further ones wait for
	// a place before that. Zero means 1,024.
	Queue int

	// PollInterval is how often a subscription looks for events that another
	// process has appended, where the engine allows several. Zero means 200 ms. Where
	// such appends are heard, as on Postgres and SQLite, it looks no more than every 5 s.
	PollInterval time.Duration

	// IndexEvery is the number of new events that are found by reading them one
	// by one, in the layout "tags", before what finds them is written for all of
	// them together: the larger, the cheaper are appends and the dearer are reads. Where
	// SQL is SQLite's these events are kept in memory to be found. Zero means 4,096 there
	// and 128 elsewhere.
	IndexEvery int

	// LockedRows bounds the rows of postings that are read for one condition while
	// others wait to append. A condition that takes more is judged on a view of its
	// own first, beside them, and what came since when its turn has come. Zero
	// means 64.
	LockedRows int

	// Now is the clock that stamps events; nil means time.Now.
	Now func() time.Time
}

// EventLayouts returns the names of the event layouts that an engine's dialect
// has.
func EventLayouts(d driver.Dialect) []string { return schemas.EventLayouts(string(d)) }

// Events is the event store of a database. Its methods may be called from several
// goroutines. Appends that come while another one commits share the next commit.
type Events struct {
	db   *DB
	log  *eventlog.Log
	opts EventOptions

	queue *appendQueue
	shore shore
	views chan struct{} // one for each append that is judged apart
	news  news
	ears  ears
	tail  *eventlog.Tail // used by the leader of a group alone

	checkpoints atomic.Bool // there is a table of them
}

// Events opens the event store, and makes it when the database has none. The
// options of the first call hold while the database is open. It fails with
// ErrLayout when the database holds another layout, or other tables and no store
// at all.
func (db *DB) Events(ctx context.Context, opts EventOptions) (*Events, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if opts.Queue < 0 || opts.PollInterval < 0 || opts.IndexEvery < 0 || opts.LockedRows < 0 {
		return nil, fmt.Errorf("open events: %w: negative option in %+v", ErrInvalid, opts)
	}
	opts.Layout = cmp.Or(opts.Layout, db.eventLayout)
	if db.events == nil {
		e, err := db.openEvents(ctx, opts)
		if err != nil {
			return nil, fmt.Errorf("open events: %w", err)
		}
		db.events = e
	}
	if has := db.events.log.Name(); opts.Layout != "" && opts.Layout != has {
		return nil, fmt.Errorf("open events: %w", eventLayoutMismatch(has, opts.Layout))
	}
	return db.events, nil
}

func eventLayoutMismatch(has, asked string) error {
	return fmt.Errorf("%w: the events have layout %q, asked for was %q; open them as %q", ErrLayout, has, asked, has)
}

func (db *DB) openEvents(ctx context.Context, opts EventOptions) (*Events, error) {
	opts = opts.withDefaults()
	e := &Events{db: db, opts: opts, queue: newAppendQueue(opts.Queue), shore: newShore(db), views: make(chan struct{}, apartAtOnce)}
	recorded, err := db.recorded(ctx)
	if err != nil {
		return nil, err
	}
	if recorded[metaEventLayout] == "" {
		if err := db.noEvents(ctx); err != nil {
			return nil, err
		}
		if recorded, err = e.create(ctx); err != nil {
			return nil, err
		}
	}
	if err := e.check(recorded); err != nil {
		return nil, err
	}
	if err := db.wholeEvents(ctx, e); err != nil {
		return nil, err
	}
	if err := e.db.tune(ctx, e.log.Tables()); err != nil || !e.shore.solo {
		return e, err
	}
	return e, e.db.read(ctx, func(ctx context.Context, q driver.Querier) error {
		head, err := e.log.Head(ctx, q)
		e.shore.committed(head, head, false) // by others, who are gone
		return err
	})
}

func (o EventOptions) withDefaults() EventOptions {
	o.Queue = cmp.Or(o.Queue, 1024)
	o.PollInterval = cmp.Or(o.PollInterval, 200*time.Millisecond)
	o.LockedRows = cmp.Or(o.LockedRows, defaultLockedRows)
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// create makes the tables, and returns what is recorded then.
func (e *Events) create(ctx context.Context) (map[string]string, error) {
	if e.db.ro {
		return nil, fmt.Errorf("%w: the database holds no events and is open for reading only", ErrLayout)
	}
	if err := e.use(cmp.Or(e.opts.Layout, defaultEventLayout)); err != nil {
		return nil, err
	}
	values := map[string]string{metaEventFormat: eventFormat, metaEventLayout: e.log.Name()}
	return e.db.create(ctx, metaEventLayout, values, e.log.Create)
}

func (e *Events) check(recorded map[string]string) error {
	if err := checkFormat(recorded); err != nil {
		return err
	}
	if err := checkRecorded(recorded); err != nil {
		return err
	}
	switch has := recorded[metaEventFormat]; has {
	case eventFormat, eventFormatUnsummed, eventFormatTruncated:
	default:
		return fmt.Errorf("%w: the events have format %q, this program reads %q; copy them with the program that wrote them", ErrLayout, has, eventFormat)
	}
	has := recorded[metaEventLayout]
	if e.opts.Layout != "" && e.opts.Layout != has {
		return eventLayoutMismatch(has, e.opts.Layout)
	}
	if err := e.use(has); err != nil {
		return err
	}
	if recorded[metaEventFormat] == eventFormatUnsummed {
		e.log.WithoutSums()
	}
	return nil
}

// use sets the layout.
func (e *Events) use(name string) error {
	dialect := e.db.engine.Info().Dialect
	if known := EventLayouts(dialect); !slices.Contains(known, name) {
		return fmt.Errorf("%w: engine %s has no event layout %q; it has %s", ErrLayout, e.db.engine.Info().Name, name, strings.Join(known, ", "))
	}
	schema, err := schemas.EventTables(name, string(dialect))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrLayout, err)
	}
	e.log = eventlog.New(schema, dialect)
	e.tail = e.log.NewTail(e.db.engine.Capabilities().MultiProcess, cmp.Or(e.opts.IndexEvery, e.log.IndexEvery()))
	return nil
}

// Layout returns the layout's name.
func (e *Events) Layout() string { return e.log.Name() }

// Head returns the highest position, zero when there is no event.
func (e *Events) Head(ctx context.Context) (head uint64, err error) {
	err = e.db.read(ctx, func(ctx context.Context, q driver.Querier) error {
		head, err = e.log.Head(ctx, q)
		return err
	})
	if err == nil {
		head, err = e.shore.visible(head)
	}
	if err != nil {
		return 0, fmt.Errorf("head of the events: %w", err)
	}
	return head, nil
}

// EventSummary is what an event store holds.
type EventSummary struct {
	Layout string      `json:"layout"`
	Head   uint64      `json:"head"`
	Events uint64      `json:"events"`
	Types  []TypeCount `json:"types"`
}

// TypeCount is how many events have a type.
type TypeCount struct {
	Type   string `json:"type"`
	Events uint64 `json:"events"`
}

// Summary counts what the store holds. It reads every event's type.
func (e *Events) Summary(ctx context.Context) (s EventSummary, err error) {
	s.Layout = e.log.Name()
	err = e.db.readBulk(ctx, func(ctx context.Context, q driver.Querier) error {
		if s.Head, err = e.log.Head(ctx, q); err != nil {
			return err
		}
		if s.Events, err = e.log.Count(ctx, q); err != nil {
			return err
		}
		types, err := e.log.Types(ctx, q)
		for _, t := range types {
			s.Types = append(s.Types, TypeCount(t))
		}
		return err
	})
	if err == nil {
		err = e.shore.ensure(s.Head)
	}
	return s, err
}

// news tells subscriptions that something was committed.
type news struct {
	mu   sync.Mutex
	wait chan struct{} // closed at the next commit; nil when nobody waits
}

// next returns a channel that is closed at the next commit.
func (n *news) next() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.wait == nil {
		n.wait = make(chan struct{})
	}
	return n.wait
}

func (n *news) publish() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.wait != nil {
		close(n.wait)
		n.wait = nil
	}
}
