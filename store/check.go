package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/varvedb/varve/internal/eventlog"
	"github.com/varvedb/varve/store/driver"
)

// CheckOptions configure a check.
type CheckOptions struct {
	// Findings bounds the listed findings of each part; zero means 20. A part
	// stops at that number.
	Findings int

	// Progress, if given, is called from time to time with the part (see
	// PartReport), the unit that is counted (rows, changes or events), how many
	// are done, and how many there are: zero when that is not known.
	Progress func(part, unit string, done, total uint64)
}

// The parts of a check.
const (
	partRecord   = "record"
	partHistory  = "history"
	partEntities = "entities"
	partEvents   = "events"
	partEngine   = "engine"
)

// Outcome is the result of a check.
type Outcome string

// The outcomes.
const (
	Sound       Outcome = "sound"         // checked completely, without a finding
	Unavailable Outcome = "not available" // this store or engine has no check of the part, so it is neither sound nor damaged
	NotChecked  Outcome = "not checked"   // it could not be checked completely
	Damaged     Outcome = "damaged"       // something is wrong, even if other parts could not be checked
)

// outcomeOf classifies an error. Only ErrCorrupt is damage: engines return it
// for damage that their libraries report, and the store for contradictory rows.
// Any other error means that the check itself failed, for example by a timeout,
// a lost server or a missing permission.
func outcomeOf(err error) Outcome {
	switch {
	case err == nil:
		return Sound
	case errors.Is(err, ErrCorrupt):
		return Damaged
	}
	return NotChecked
}

// worse combines the outcomes of two parts. A part without a check does not
// make the others less sound.
func worse(a, b Outcome) Outcome {
	order := []Outcome{Unavailable, Sound, NotChecked, Damaged}
	return order[max(1, slices.Index(order, a), slices.Index(order, b))]
}

// Finding is a fault that was found in a store.
type Finding struct {
	Part    string `json:"part"` // see PartReport
	Problem string `json:"problem"`
	Source  bool   `json:"source"` // damage that cannot be rebuilt from other rows
}

// PartReport is the result of one part of a check. The parts are "record", the
// store's settings and counters; "history", versions against the digests of
// blocks; "entities", versions against each other and against the indexes that
// find them; "events", events against their checksums and indexes; and
// "engine", the engine's internal structures.
type PartReport struct {
	Part    string  `json:"part"`
	Outcome Outcome `json:"outcome"`

	// Reason says why the part, or the rest of it, was not checked. It is empty
	// for a sound part.
	Reason string `json:"reason,omitempty"`

	err error // the error behind Reason, unless it is damage
}

// CheckReport is the result of a check.
type CheckReport struct {
	Outcome Outcome      `json:"outcome"` // of all parts: the worst
	Parts   []PartReport `json:"parts"`   // that the store has

	Layout  string      `json:"layout,omitempty"` // of the entities
	Head    BlockHeader `json:"head"`
	Sound   BlockHeader `json:"sound"` // last block up to which the digests agree
	Digest  bool        `json:"digest_checked"`
	Changes uint64      `json:"changes"` // in the history

	EventLayout string `json:"event_layout,omitempty"`
	EventHead   uint64 `json:"event_head"`
	Events      uint64 `json:"events"`

	Engine   string    `json:"engine"` // the engine's own check, and its limits
	Findings []Finding `json:"findings"`

	Rebuilt []string `json:"rebuilt,omitempty"` // derived data that DB.Repair rebuilt before the check
}

// Err returns nil when every part is sound or has no check. For damage it
// returns an error that wraps ErrCorrupt and names the findings. For parts that
// could not be checked it returns an error that wraps the cause, because such a
// part may be damaged.
func (r *CheckReport) Err() error {
	var errs []error
	for _, f := range r.Findings {
		errs = append(errs, fmt.Errorf("%s: %s", f.Part, f.Problem))
	}
	for _, p := range r.Parts {
		if p.err != nil {
			errs = append(errs, fmt.Errorf("%s: not checked: %w", p.Part, p.err))
		}
	}
	err := errors.Join(errs...)
	if len(r.Findings) > 0 {
		err = fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return err
}

// Check looks for damage in everything that the database holds: the store's
// record, the chain of digests, versions, postings and sets, events with their
// checksums, positions and indexes, and then the engine's internal structures.
// It reads everything a few times and holds little in memory. Where possible it
// continues after damage, and after a part that cannot be checked. The report
// lists the findings, and for each part whether it was checked. An error means
// that there is no store to check (ErrLayout).
func (db *DB) Check(ctx context.Context, opts *CheckOptions) (CheckReport, error) {
	c := db.newChecker(opts)
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

func (db *DB) newChecker(opts *CheckOptions) *checker {
	c := &checker{db: db}
	if opts != nil {
		c.opts = *opts
	}
	c.opts.Findings = cmp.Or(c.opts.Findings, 20)
	return c
}

func (c *checker) run(ctx context.Context) error {
	recorded, err := c.db.recorded(ctx)
	if err == nil && recorded == nil {
		if err := c.db.checkComplete(ctx); err != nil {
			c.done(partRecord, true, err)
			c.report.Outcome = Damaged
			return nil
		}
		return errNoStore
	}
	ents, evs := recorded[metaLayout] != "", recorded[metaEventLayout] != ""
	if err == nil {
		err = checkRecorded(recorded)
	}
	if err == nil {
		err = c.db.missing(ctx, metaTable, blocksTable)
	}
	if err == nil && !ents && !evs {
		err = fmt.Errorf("%w: the store records no layout, neither of entities nor of events", ErrCorrupt)
	}
	c.done(partRecord, true, err)
	if err != nil {
		for _, part := range []string{partHistory, partEntities, partEvents} {
			c.done(part, true, errNoRecord)
		}
	}
	if err == nil && ents {
		c.entities(ctx)
	}
	if err == nil && evs {
		c.events(ctx)
	}
	c.engine(ctx)
	for _, p := range c.report.Parts {
		c.report.Outcome = worse(c.report.Outcome, p.Outcome)
	}
	return nil
}

// errNoRecord is the reason for skipping parts that cannot be read without the
// record.
var errNoRecord = errors.New("what the store records of itself cannot be relied on")

func (c *checker) find(part string, source bool, problem string) {
	problem = strings.TrimPrefix(problem, ErrCorrupt.Error()+": ")
	c.report.Findings = append(c.report.Findings, Finding{Part: part, Source: source, Problem: problem})
}

// finder returns a function that collects findings which Repair can fix, up to
// a limit.
func (c *checker) finder(ctx context.Context, part string) func(problem string) bool {
	before := len(c.report.Findings)
	return func(problem string) bool {
		c.find(part, false, problem)
		return len(c.report.Findings)-before < c.opts.Findings && ctx.Err() == nil
	}
}

// done ends a part with its findings and with the error that ended it.
// Depending on the error it adds a finding, or the reason why the part was not
// checked.
func (c *checker) done(part string, source bool, err error) {
	p := PartReport{Part: part, Outcome: outcomeOf(err)}
	switch p.Outcome {
	case Damaged:
		c.find(part, source, err.Error())
	case NotChecked:
		p.Reason, p.err = err.Error(), err
	}
	if slices.ContainsFunc(c.report.Findings, func(f Finding) bool { return f.Part == part }) {
		p.Outcome = Damaged
	}
	c.report.Parts = append(c.report.Parts, p)
}

// unavailable ends a part that cannot be checked in this store or by this engine.
func (c *checker) unavailable(part, reason string) {
	c.report.Parts = append(c.report.Parts, PartReport{Part: part, Outcome: Unavailable, Reason: reason})
}

func (c *checker) progress(part, unit string, total uint64) func(done uint64) {
	return func(done uint64) {
		if c.opts.Progress != nil {
			c.opts.Progress(part, unit, done, total)
		}
	}
}

// openedEntities returns the entity store without starting background work on
// it, because it may be damaged.
func (db *DB) openedEntities(ctx context.Context) (*Entities, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.entities != nil {
		return db.entities, nil
	}
	return db.openEntities(ctx, "", EntityOptions{DeferIndexes: true})
}

// openedEvents returns the event store.
func (db *DB) openedEvents(ctx context.Context) (*Events, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.events != nil {
		return db.events, nil
	}
	return db.openEvents(ctx, EventOptions{})
}

func (c *checker) entities(ctx context.Context) {
	e, err := c.db.openedEntities(ctx)
	if err != nil {
		c.done(partHistory, true, err)
		c.done(partEntities, false, err)
		return
	}
	c.verify(ctx, e)
}

// verify checks the chain of digests and the layout's rows in the same views.
func (c *checker) verify(ctx context.Context, e *Entities) {
	c.report.Layout = e.layout.Name()
	missing := e.db.missing(ctx, e.layout.Tables()...) // before the views, because it needs a reader too
	views, err := e.views(ctx, 3)
	if err != nil {
		c.done(partHistory, true, err)
		c.done(partEntities, false, err)
		return
	}
	err = c.digest(ctx, e, views)
	if err == nil && !c.report.Digest {
		c.unavailable(partHistory, "the digest cannot be computed without the whole history: the store is pruned, or its layout keeps none")
	} else {
		c.done(partHistory, true, err)
	}
	if missing != nil {
		c.done(partEntities, true, errors.Join(missing, closeViews(views)))
		return
	}
	each := everyRow(ctx, c.progress(partEntities, "rows", 0))
	err = e.layout.Check(ctx, countedQuerier{views[0].reader, each}, countedQuerier{views[1].reader, each},
		countedQuerier{views[2].reader, each}, c.report.Digest, c.finder(ctx, partEntities))
	c.done(partEntities, false, errors.Join(err, ctx.Err(), closeViews(views)))
}

func (c *checker) events(ctx context.Context) {
	e, err := c.db.openedEvents(ctx)
	if err != nil {
		c.done(partEvents, true, err)
		return
	}
	c.report.EventLayout = eventLayout
	if err := e.db.missing(ctx, eventlog.Tables...); err != nil {
		c.done(partEvents, true, err)
		return
	}
	if err := e.missingCheckpoints(ctx); outcomeOf(err) == Damaged {
		c.find(partEvents, true, err.Error())
	}
	done, head, problems, err := c.eventLog(ctx, e)
	c.report.EventHead, c.report.Events = done.Head, done.Events
	for _, p := range problems {
		c.find(partEvents, done.Source, p)
	}
	if err == nil && len(problems) == 0 && done.Head != head {
		c.find(partEvents, true, fmt.Sprintf("the last event is %d, the head is %d", done.Head, head))
	}
	c.done(partEvents, done.Source, err)
}

// eventLog checks the events and that the last one is at the head.
func (c *checker) eventLog(ctx context.Context, e *Events) (done eventlog.Checked, head uint64, problems []string, err error) {
	err = c.db.readBulk(ctx, func(inner context.Context, q driver.Querier) (err error) {
		if head, err = e.log.Head(inner, q); err != nil {
			done.Source = outcomeOf(err) == Damaged
			return err
		}
		done, err = e.log.Check(inner, countedQuerier{q, everyRow(ctx, nil)}, func(problem string) bool {
			problems = append(problems, problem)
			return len(problems) < c.opts.Findings
		}, c.progress(partEvents, "events", head))
		return errors.Join(err, ctx.Err())
	})
	return done, head, problems, err
}

// engine runs the engine's check.
func (c *checker) engine(ctx context.Context) {
	c.progress(partEngine, "", 0)(0)
	before := len(c.report.Findings)
	var did string
	var err error
	if files, ok := c.db.engine.(driver.Checker); ok {
		did, err = files.Check(ctx, c.finder(ctx, partEngine))
	}
	c.report.Engine = did
	if err = errors.Join(err, ctx.Err()); did == "" && err == nil && len(c.report.Findings) == before {
		c.unavailable(partEngine, "the engine has no check of its own")
		return
	}
	c.done(partEngine, false, err)
}

// missing runs meta.missing in a new view.
func (db *DB) missing(ctx context.Context, tables ...*driver.Table) error {
	return db.read(ctx, func(ctx context.Context, q driver.Querier) error {
		return db.meta.missing(ctx, q, tables)
	})
}
