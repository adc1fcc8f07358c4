package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/varvedb/varve/internal/eventlog"
	"github.com/varvedb/varve/schemas"
	"github.com/varvedb/varve/store/driver"
)

// The keys and values that the event store keeps in the record.
const (
	metaEventLayout = "events.layout" // name of the tables
	metaEventFormat = "events.format" // their version
)

// eventLayout is the name of the tables. On Postgres there was another one, "gin".
const eventLayout = "tags"

// eventFormat is the version of the tables. Version 1 wrote an event's postings
// together with it, and version 2 had no checksums. A new store has version 3.
// It gets version 5 when its first events are truncated, or when a commit leaves
// a batch of postings half written, because older programs would misread either.
// Version 4 had truncated events only.
const (
	eventFormat      = "3"
	eventFormatNewer = "5"
)

// eventFormats are the versions that this program reads.
var eventFormats = []string{eventFormat, "4", eventFormatNewer}

// EventOptions configure how appends are queued and how events are found.
type EventOptions struct {
	// Queue is the number of appends that may wait for the writer; further ones
	// wait for a place in the queue. Zero means 1,024.
	Queue int

	// PollInterval is how often a subscription looks for events of other
	// processes, if the engine allows several. Zero means 200 ms. Engines that
	// report other processes' appends, such as Postgres and SQLite, are polled
	// only every 5 s.
	PollInterval time.Duration

	// IndexEvery is the number of new events that every process keeps in memory
	// before their postings (the index of tags and types) are written together.
	// A larger number makes appends cheaper. On SQLite and libSQL the appends
	// that follow each write a part of the postings, and the memory may grow to
	// more than twice the number; elsewhere one append writes all of them. Zero
	// means 4,096 on SQLite and libSQL and 128 elsewhere.
	IndexEvery int

	// LockedRows bounds the posting rows that are read for one condition under
	// the writer's lock. A condition that needs more is first judged on a
	// separate view, while other appends continue. Under the lock only the
	// events since that view are then judged. Zero means 64.
	LockedRows int

	// Now is the clock for the times of events; nil means time.Now.
	Now func() time.Time
}

// Events is the event store of a database. Its methods may be called from
// several goroutines. Appends that arrive during a commit share the next
// commit.
type Events struct {
	db     *DB
	log    *eventlog.Log
	opts   EventOptions
	tail   *eventlog.Tail
	commit *groupCommit

	views    chan struct{} // limits the appends that are judged on a view at the same time
	news     news
	listener listener

	checkpoints atomic.Bool // the table of checkpoints exists, with its columns
	sql         ownTables   // that table
}

// Events opens the event store, and creates it if the database has none. The
// first call fixes the options while the database is open; later calls must
// leave them out or repeat them. It fails with ErrLayout when the database
// holds other tables and no store, or events of a format that this version
// cannot read, and with ErrInvalid when an option is negative or differs from
// the first call's. A later call may not give a clock, because clocks cannot be
// compared.
func (db *DB) Events(ctx context.Context, options *EventOptions) (_ *Events, err error) {
	defer wrap(&err, "open the events of "+db.name)
	opts := EventOptions{}
	if options != nil {
		opts = *options
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	if opts.Queue < 0 || opts.PollInterval < 0 || opts.IndexEvery < 0 || opts.LockedRows < 0 {
		return nil, fmt.Errorf("%w: negative option in %+v", ErrInvalid, opts)
	}
	if e := db.events; e != nil {
		if err := e.sameOptions(opts); err != nil {
			return nil, err
		}
		return e, nil
	}
	e, err := db.openEvents(ctx, opts)
	if err != nil {
		return nil, err
	}
	db.events = e
	return e, nil
}

// sameOptions refuses options that differ from the first call's.
func (e *Events) sameOptions(opts EventOptions) error {
	if opts.Now != nil {
		return fmt.Errorf("%w: the store is open and keeps its clock (Now); give it in the first call only", ErrInvalid)
	}
	return errors.Join(
		sameOption("Queue", opts.Queue, e.opts.Queue),
		sameOption("PollInterval", opts.PollInterval, e.opts.PollInterval),
		sameOption("IndexEvery", opts.IndexEvery, e.opts.IndexEvery),
		sameOption("LockedRows", opts.LockedRows, e.opts.LockedRows),
	)
}

func (db *DB) openEvents(ctx context.Context, opts EventOptions) (*Events, error) {
	recorded, err := db.recorded(ctx)
	if err != nil {
		return nil, err
	}
	if err := db.checkComplete(ctx); err != nil {
		return nil, err
	}
	if recorded[metaEventLayout] == "" {
		if recorded, err = db.createEvents(ctx); err != nil {
			return nil, err
		}
	}
	log, err := db.eventLog(recorded)
	if err != nil {
		return nil, err
	}
	if err := db.missing(ctx, append([]*driver.Table{metaTable}, eventlog.Tables...)...); err != nil {
		return nil, err
	}
	opts = opts.withDefaults(log)
	overlapper, overlaps := db.engine.(driver.Overlapper)
	shared := db.engine.Capabilities().MultiProcess
	e := &Events{db: db, log: log, opts: opts, views: make(chan struct{}, maxJudgeViews)}
	if e.sql, err = newOwnTables(schemas.CheckpointTables(string(db.engine.Info().Dialect))); err != nil {
		return nil, err
	}
	e.tail = log.NewTail(eventlog.TailOptions{
		Shared: shared, Every: opts.IndexEvery, Begin: db.newerEvents, Overlapper: overlapper, Keep: db.keepEvents,
	})
	e.commit = newGroupCommit(db.engine, e.tail, opts.Queue)
	if err := db.tune(ctx, eventlog.Tables); err != nil || overlaps || shared {
		return e, err
	}
	head, err := e.logHead(ctx)
	e.tail.Opened(head) // other processes' events; those processes are gone
	return e, err
}

func (o EventOptions) withDefaults(log *eventlog.Log) EventOptions {
	o.Queue = cmp.Or(o.Queue, 1024)
	o.PollInterval = cmp.Or(o.PollInterval, 200*time.Millisecond)
	o.IndexEvery = cmp.Or(o.IndexEvery, log.IndexEvery())
	o.LockedRows = cmp.Or(o.LockedRows, defaultLockedRows)
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// createEvents creates the tables and returns the recorded values.
func (db *DB) createEvents(ctx context.Context) (map[string]string, error) {
	if db.ro {
		return nil, driver.Of(ErrLayout, errors.New("the database holds no events"))
	}
	log, err := eventlog.New(db.engine.Info().Dialect)
	if err != nil {
		return nil, err
	}
	values := map[string]string{metaEventFormat: eventFormat, metaEventLayout: eventLayout}
	return db.create(ctx, metaEventLayout, values, log.Create)
}

// eventLog returns the event log that the record describes.
func (db *DB) eventLog(recorded map[string]string) (*eventlog.Log, error) {
	if err := checkFormat(recorded); err != nil {
		return nil, err
	}
	if err := checkRecorded(recorded); err != nil {
		return nil, err
	}
	layout, format := recorded[metaEventLayout], recorded[metaEventFormat]
	if layout != eventLayout || !slices.Contains(eventFormats, format) {
		return nil, fmt.Errorf("%w: the events have layout %q and format %q, this version reads %q and formats %q; export them with the varve "+
			"that wrote them (varve events export) and import them into a new store (varve events import)",
			ErrLayout, layout, format, eventLayout, eventFormats)
	}
	return eventlog.New(db.engine.Info().Dialect)
}

// newerEvents records that older programs cannot read the events.
func (db *DB) newerEvents(ctx context.Context, tx driver.Tx) error {
	has, err := db.meta.get(ctx, tx, metaEventFormat)
	if err != nil || has == eventFormatNewer {
		return err
	}
	return db.meta.set(ctx, tx, metaEventFormat, eventFormatNewer)
}

// Head returns the highest position, zero when there is no event.
func (e *Events) Head(ctx context.Context) (head uint64, err error) {
	defer wrap(&err, "head of the events")
	if head, err = e.logHead(ctx); err != nil {
		return 0, err
	}
	return e.commit.visible(head)
}

// logHead returns the highest committed position.
func (e *Events) logHead(ctx context.Context) (uint64, error) { return inView(ctx, e.db, e.log.Head) }

// EventSummary has the counts of an event store.
type EventSummary struct {
	Head   uint64      `json:"head"`
	Events uint64      `json:"events"`
	Types  []TypeCount `json:"types"`
}

// TypeCount is the number of events of a type.
type TypeCount struct {
	Type   string `json:"type"`
	Events uint64 `json:"events"`
}

// Summary counts the events by type. It reads every event's type.
func (e *Events) Summary(ctx context.Context) (s EventSummary, err error) {
	err = e.db.readBulk(ctx, func(ctx context.Context, q driver.Querier) error {
		if s.Head, err = e.log.Head(ctx, q); err != nil {
			return err
		}
		return e.log.Types(ctx, q, func(typ string, events uint64) {
			s.Types = append(s.Types, TypeCount{typ, events})
			s.Events += events
		})
	})
	if err == nil {
		err = e.commit.ensure(s.Head)
	}
	return s, err
}

// news wakes subscriptions after a commit.
type news struct {
	mu   sync.Mutex
	wait chan struct{} // closed at the next commit; nil when no goroutine waits
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
