package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/varvedb/varve/store/driver"
)

// DefaultFindings is how many findings a check lists when nobody says.
const DefaultFindings = 20

// CheckOptions say how a check is reported. The zero value is usable.
type CheckOptions struct {
	// Findings bounds the findings of each part that are listed; zero means
	// DefaultFindings. A part ends with its last listed finding.
	Findings int

	// Progress, if given, is called now and then.
	Progress func(CheckProgress)
}

// CheckProgress is how far a check is.
type CheckProgress struct {
	Part  string // as Finding.Part
	Unit  string // what is counted: rows, changes, events
	Done  uint64
	Total uint64 // zero when it is not known
}

// The parts of a check.
const (
	PartRecord   = "record"   // what the store says of itself
	PartHistory  = "history"  // versions against the digests of blocks
	PartEntities = "entities" // versions against each other and what finds them
	PartEvents   = "events"   // events against their checksums and what finds them
	PartEngine   = "engine"   // the engine's own structures
)

// Finding is something that is wrong with a store.
type Finding struct {
	Part    string `json:"part"`
	Problem string `json:"problem"`
	Source  bool   `json:"source"` // what is damaged cannot be made anew from the rest
}

// CheckReport is what a check has found.
type CheckReport struct {
	Layout  string    `json:"layout,omitempty"` // of the entities
	Head    BlockHead `json:"head"`
	Sound   BlockHead `json:"sound"` // last block up to which the digests agree
	Digest  bool      `json:"digest_checked"`
	Changes uint64    `json:"changes"` // in the history

	EventLayout string `json:"event_layout,omitempty"`
	EventHead   uint64 `json:"event_head"`
	Events      uint64 `json:"events"`

	Engine   string    `json:"engine"` // what the engine checked, or that it cannot
	Findings []Finding `json:"findings"`
}

// Err returns nil when nothing was found, else an error that wraps ErrCorrupt and
// names what was.
func (r *CheckReport) Err() error {
	if len(r.Findings) == 0 {
		return nil
	}
	errs := make([]error, len(r.Findings))
	for i, f := range r.Findings {
		errs[i] = fmt.Errorf("%s: %s", f.Part, f.Problem)
	}
	return fmt.Errorf("%w: %w", ErrCorrupt, errors.Join(errs...))
}

// Check looks for damage in everything that the database holds: what the store
// records of itself, the chain of digests, versions, postings and sets, events with
// their checksums, positions and indexes, and then the engine's own structures. It
// reads everything a few times and holds little in memory, and goes on after
// damage where it can. What is wrong is in the report. An error means that the
// check could not be made.
func (db *DB) Check(ctx context.Context, opts CheckOptions) (CheckReport, error) {
	c := checker{db: db, opts: opts}
	c.opts.Findings = cmp.Or(opts.Findings, DefaultFindings)
	if err := c.run(ctx); err != nil {
		return c.report, fmt.Errorf("check: %w", err)
	}
	return c.report, nil
}

type checker struct {
	db     *DB
	opts   CheckOptions
	report CheckReport
}

func (c *checker) run(ctx context.Context) error {
	m, err := newMeta(c.db.engine.Info().Dialect)
	if err != nil {
		return err
	}
	recorded, err := c.db.recorded(ctx, m)
	if err := c.failed(PartRecord, true, err); err != nil {
		return err
	}
	if err == nil && recorded == nil {
		return fmt.Errorf("%w: the database holds no Varve store", ErrLayout)
	}
	if recorded[metaLayout] != "" {
		if err := c.entities(ctx); err != nil {
			return err
		}
	}
	if recorded[metaEventLayout] != "" {
		if err := c.events(ctx); err != nil {
			return err
		}
	}
	if recorded != nil && recorded[metaLayout] == "" && recorded[metaEventLayout] == "" {
		c.find(PartRecord, true, "the store records no layout, neither of entities nor of events")
	}
	return c.engine(ctx)
}

func (c *checker) find(part string, source bool, problem string) {
	c.report.Findings = append(c.report.Findings, Finding{Part: part, Source: source, Problem: problem})
}

// failed makes a finding of an error, and returns those that are none: of a check
// that was interrupted.
func (c *checker) failed(part string, source bool, err error) error {
	if err == nil || interrupted(err) {
		return err
	}
	c.find(part, source, err.Error())
	return nil
}

// interrupted tells an error that says nothing of the store's state.
func interrupted(err error) bool {
	for _, e := range []error{
		context.Canceled, context.DeadlineExceeded, ErrClosed, ErrLocked, ErrDiskFull, ErrReaderExpired, ErrReadOnly, ErrUnsupported, ErrMemory,
	} {
		if errors.Is(err, e) && !errors.Is(err, ErrCorrupt) {
			return true
		}
	}
	return false
}

func (c *checker) progress(part, unit string, total uint64) func(done uint64) {
	return func(done uint64) {
		if c.opts.Progress != nil {
			c.opts.Progress(CheckProgress{Part: part, Unit: unit, Done: done, Total: total})
		}
	}
}

// opened returns the entity store as it is, without starting work in the
// background on one that may be damaged.
func (db *DB) openedEntities(ctx context.Context) (*Entities, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.entities != nil {
		return db.entities, nil
	}
	return db.openEntities(ctx, "", EntityOptions{DeferIndexes: true})
}

func (db *DB) openedEvents(ctx context.Context) (*Events, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.events != nil {
		return db.events, nil
	}
	return db.openEvents(ctx, EventOptions{})
}

func (c *checker) entities(ctx context.Context) error {
	e, err := c.db.openedEntities(ctx)
	if err != nil {
		return c.failed(PartRecord, true, err)
	}
	c.report.Layout = e.layout.Name()
	if err := c.history(ctx, e); err != nil {
		return err
	}
	total, err := e.rows(ctx)
	if err := c.failed(PartEntities, false, err); err != nil {
		return err
	}
	problems, err := e.verifyRows(ctx, c.opts.Findings, c.progress(PartEntities, "rows", total))
	for _, p := range problems {
		c.find(PartEntities, false, p.Error())
	}
	return c.failed(PartEntities, false, err)
}

// history checks the chain of digests.
func (c *checker) history(ctx context.Context, e *Entities) error {
	v, err := e.verifyDigest(ctx, c.progress(PartHistory, "changes", 0))
	c.report.Head, c.report.Sound, c.report.Digest, c.report.Changes = v.Head, v.Sound, v.Digest, v.Changes
	return c.failed(PartHistory, true, err)
}

// rows returns how many rows a check of the rows reads, zero when it cannot be
// known.
func (e *Entities) rows(ctx context.Context) (n uint64, err error) {
	err = e.db.read(ctx, func(ctx context.Context, q driver.Querier) error {
		tables, err := e.layout.Rows(ctx, q)
		if len(tables) > 1 {
			for _, t := range tables {
				n += t.Rows
			}
		}
		return err
	})
	return n, err
}

func (c *checker) events(ctx context.Context) error {
	e, err := c.db.openedEvents(ctx)
	if err != nil {
		return c.failed(PartRecord, true, err)
	}
	c.report.EventLayout = e.log.Name()
	source, found, total := false, 0, uint64(0)
	var problems []string
	err = e.db.read(ctx, func(ctx context.Context, q driver.Querier) (err error) {
		if total, err = e.log.Head(ctx, q); err != nil {
			source = true
			return err
		}
		count := &rowCount{}
		done, err := e.log.Check(ctx, count.of(ctx, q), func(problem string) bool {
			problems = append(problems, problem)
			found++
			return found < c.opts.Findings
		}, c.progress(PartEvents, "events", total))
		c.report.EventHead, c.report.Events, source = done.Head, done.Events, done.Source
		return err
	})
	for _, p := range problems {
		c.find(PartEvents, source, p)
	}
	if err == nil && len(problems) == 0 && c.report.EventHead != total {
		c.find(PartEvents, true, fmt.Sprintf("the last event is %d, the head is %d", c.report.EventHead, total))
	}
	return c.failed(PartEvents, source, err)
}

// engine runs the engine's own check.
func (c *checker) engine(ctx context.Context) error {
	checks, ok := c.db.engine.(driver.Checker)
	if !ok {
		c.report.Engine = "has no check of its own"
		return nil
	}
	c.progress(PartEngine, "", 0)(0)
	found := 0
	did, err := checks.Check(ctx, func(problem string) bool {
		c.find(PartEngine, false, problem)
		found++
		return found < c.opts.Findings && ctx.Err() == nil
	})
	c.report.Engine = did
	return c.failed(PartEngine, false, errors.Join(err, ctx.Err()))
}
