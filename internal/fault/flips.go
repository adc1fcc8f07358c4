package fault

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/varvedb/varve/internal/crashtest"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

// Flips is the trial that damages files.
type Flips struct {
	// Blind makes the check find nothing, to prove that the trial tells wrong
	// answers that nothing reports.
	Blind bool

	// Shm is where the copies are written; "" means /dev/shm where it can be
	// written to, else the cell's directory.
	Shm string
}

// The outcomes; see the package comment.
const (
	Refused   = "refused"
	Found     = "found"
	Unchecked = "unchecked"
	Reading   = "reading"
	TailLost  = "tail"
	Harmless  = "harmless"
	Silent    = "SILENT"
)

// patience is how long one damaged store may take.
const patience = time.Minute

// Name implements crashtest.Trial.
func (f *Flips) Name() string { return "flips" }

// Skip implements crashtest.Trial.
func (f *Flips) Skip(c crashtest.Cell) string {
	if c.Layout == "simple" {
		return "a layout without history has no digest to compare"
	}
	return ""
}

// Run implements crashtest.Trial.
func (f *Flips) Run(ctx context.Context, c crashtest.Cell, rng *rand.Rand, r *crashtest.Report) error {
	s := NewSubject(c)
	im, err := f.prepare(ctx, c, s, rng)
	if err != nil {
		return fmt.Errorf("make a store: %w", err)
	}
	work, done, err := f.workDir(c)
	if err != nil {
		return err
	}
	defer done()
	for n := 0; n <= c.Faults && ctx.Err() == nil; n++ {
		fault := im.draw(rng)
		if n == 0 {
			fault.kind = "none" // the copy itself must be sound
		}
		outcome, why, err := f.judge(ctx, c, s, im, fault, work)
		if err != nil {
			return err
		}
		if n == 0 && outcome != Harmless {
			return fmt.Errorf("a copy without a fault is not sound: %s: %s", outcome, why)
		}
		if n == 0 {
			continue
		}
		r.Fault(f, c, where(im.files[fault.file].path)+" "+fault.kind)
		r.Count(f, c, outcome, 1)
		if outcome == Silent {
			r.Violate(f, c, "fault %d, %s: %s", n, fault.describe(im), why)
		}
	}
	return nil
}

// NewSubject returns what a cell's store holds.
func NewSubject(c crashtest.Cell) Subject {
	if c.Layout == crashtest.EventsLayout {
		return &events{appends: 60}
	}
	return &entities{layout: c.Layout, blocks: 30}
}

// prepare makes a store and returns its files: of two out of three seeds
// those of a closed one, else those that a killed process leaves, with a log.
func (f *Flips) prepare(ctx context.Context, c crashtest.Cell, s Subject, rng *rand.Rand) (im *image, err error) {
	params := []string{"memory", "64MiB"}
	d, ok := driver.Lookup(c.Engine)
	if ok && d.Capabilities.WALCheckpoint {
		params = append(params, "checkpoint", "manual")
	}
	db, err := store.Open(ctx, c.URL("store", params...), nil)
	if err != nil {
		return nil, err
	}
	killed := rng.IntN(3) == 0
	err = s.Fill(ctx, db, rng, 0)
	if err == nil && killed {
		if _, err = db.Checkpoint(ctx, true); errors.Is(err, store.ErrUnsupported) {
			err = nil
		}
	}
	if err == nil {
		err = s.Fill(ctx, db, rng, 1)
	}
	aim, aimErr := aimAt(ctx, db)
	err = errors.Join(err, aimErr)
	if err == nil && killed {
		im, err = takeImage(c.Dir, aim)
	}
	if err = errors.Join(err, db.Close()); err != nil || killed {
		return im, err
	}
	return takeImage(c.Dir, aim)
}

// aimAt tells which files of a database are worth hitting: those of tables, indexes
// and the log, where most of a directory is the server's own catalogue.
func aimAt(ctx context.Context, db *store.DB) (func(string) bool, error) {
	if db.Engine().Info().Dialect != driver.Postgres {
		return nil, nil
	}
	q, err := db.Engine().Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	defer q.Close()
	rows, err := q.Query(ctx, `SELECT pg_relation_filepath(oid) FROM pg_class
WHERE relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema()) AND relkind IN ('r', 'i')
    OR oid IN (SELECT reltoastrelid FROM pg_class WHERE relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema()) AND reltoastrelid <> 0)`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	files := map[string]bool{}
	for rows.Next() {
		var path string
		if err := rows.Scan(&path); err != nil {
			return nil, err
		}
		files[path] = true
	}
	return func(path string) bool {
		_, rel, _ := strings.Cut(path, "data/")
		return files[rel] || strings.HasPrefix(rel, "pg_wal/0000") || strings.HasPrefix(rel, "global/pg_control")
	}, rows.Err()
}

// where names the kind of a file.
func where(path string) string {
	switch {
	case strings.Contains(path, "pg_wal"), strings.HasSuffix(path, "wal"):
		return "log"
	case strings.HasSuffix(path, ".guard"):
		return "guard"
	}
	return "database"
}

// workDir makes the directory for copies.
func (f *Flips) workDir(c crashtest.Cell) (dir string, done func(), err error) {
	parent := f.Shm
	if parent == "" {
		parent = "/dev/shm"
	}
	if dir, err = os.MkdirTemp(parent, "varve-flips-"); err != nil {
		dir, err = os.MkdirTemp(c.Dir, "copies-")
	}
	return dir, func() { _ = os.RemoveAll(dir) }, err
}

// judge makes a copy with a fault and says what came of it.
func (f *Flips) judge(ctx context.Context, c crashtest.Cell, s Subject, im *image, fault fault, work string) (outcome, why string, err error) {
	dir := filepath.Join(work, "copy")
	if err := os.RemoveAll(dir); err != nil {
		return "", "", err
	}
	damage := &fault
	if fault.kind == "none" {
		damage = nil
	}
	if err := im.restore(dir, damage); err != nil {
		return "", "", err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c.Dir = dir
	outcome, why = f.examine(ctx, c.URL("store", "memory", "64MiB", "lock_timeout", "1s"), s)
	if errors.Is(ctx.Err(), context.Canceled) {
		return "", "", ctx.Err()
	}
	return outcome, why, nil
}

// examine opens a damaged store. A panic is a wrong answer of the worst kind.
func (f *Flips) examine(ctx context.Context, url string, s Subject) (outcome, why string) {
	defer func() {
		if p := recover(); p != nil {
			outcome, why = Silent, fmt.Sprintf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	db, err := store.Open(ctx, url, nil)
	if err != nil {
		return Refused, err.Error()
	}
	defer db.Close()
	report, checkErr := db.Check(ctx, store.CheckOptions{})
	if f.Blind {
		report, checkErr = store.CheckReport{}, nil
	}
	behind, err := s.Verify(ctx, db)
	switch {
	case store.OutcomeOf(errors.Join(checkErr, report.Err())) == store.Damaged:
		return Found, fmt.Sprint(checkErr, report.Err())
	case checkErr != nil || report.Err() != nil:
		return Unchecked, fmt.Sprint(checkErr, report.Err())
	case errors.Is(err, ErrWrong):
		return Silent, err.Error()
	case err != nil:
		return Reading, err.Error()
	case behind:
		return TailLost, ""
	}
	return Harmless, ""
}
