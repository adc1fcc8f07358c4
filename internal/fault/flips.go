// Package fault damages stores and takes their resources away, and watches
// what they say.
//
// Flips makes a small store, copies its files, changes one place of a copy, opens
// it, lets it check itself and asks it everything that a model of its history can
// answer. What comes of it is one of
//
//	refused   it does not open
//	found     a check finds it
//	unchecked a check could not look at something, and finds nothing
//	reading   the check finds nothing, but a read fails
//	tail      the engine takes the end of its log for torn: the store is at an
//	          earlier block or event, with the right answers of that time
//	harmless  every answer is right
//	SILENT    an answer is wrong and nothing says so
//
// The last one is a violation.
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

// The outcomes that count as results; see the package comment.
const (
	harmless = "harmless"
	silent   = "SILENT"
)

// patience bounds the time for one damaged store.
const patience = time.Minute

// Flips is the trial that damages files. With blind it ignores the findings of
// the check, to prove that the trial notices wrong answers.
func Flips(blind bool) crashtest.Trial {
	return crashtest.Trial{
		Name: "flips", Turn: 400,
		Skip: func(c crashtest.Cell) string {
			if c.Layout == "simple" {
				return "a layout without history has no digest to compare"
			}
			return ""
		},
		Run: func(ctx context.Context, c crashtest.Cell, rng *rand.Rand, r *crashtest.Row) error {
			return flips(ctx, c, rng, r, blind)
		},
	}
}

// flips damages copies of one store. The first copy is undamaged, as a control.
func flips(ctx context.Context, c crashtest.Cell, rng *rand.Rand, r *crashtest.Row, blind bool) error {
	contents := crashtest.NewContents(c.Layout, rng.Uint64())
	im, err := prepare(ctx, c, contents, rng)
	if err != nil {
		return fmt.Errorf("make a store: %w", err)
	}
	work, err := os.MkdirTemp("/dev/shm", "varve-flips-")
	if err != nil {
		work = filepath.Join(c.Dir, "copies")
	}
	defer func() { _ = os.RemoveAll(work) }() // of memory
	for n := 0; n <= c.Faults && ctx.Err() == nil; n++ {
		f := fault{}
		if n > 0 {
			f = im.draw(rng)
		}
		c.Dir = filepath.Join(work, "copy")
		if err := errors.Join(os.RemoveAll(c.Dir), os.MkdirAll(c.Dir, 0o755), im.restore(c.Dir, f)); err != nil {
			return err
		}
		outcome, why := examine(ctx, c.URL("store", "memory", "64MiB", "lock_timeout", "1s"), contents, blind)
		switch {
		case ctx.Err() != nil:
			return nil
		case n == 0 && outcome != harmless:
			return fmt.Errorf("a copy without a fault is not sound: %s: %s", outcome, why)
		case n == 0:
			continue
		}
		r.Fault(fileKind(im[f.file].path) + " " + f.kind)
		r.Outcomes[outcome]++
		if outcome == silent {
			r.Violate("fault %d, %s: %s", n, f.describe(im), why)
		}
	}
	return nil
}

// How many steps are written before a checkpoint, if the engine has one, and
// after it.
const (
	blocks  = 30
	appends = 60
)

// prepare makes a store and returns its files: for two of three seeds the files
// of a closed store, otherwise the files that a killed process leaves, with a
// log.
func prepare(ctx context.Context, c crashtest.Cell, contents *crashtest.Contents, rng *rand.Rand) (im image, err error) {
	params, steps := []string{"memory", "64MiB", "backlog", "60"}, blocks
	if c.Layout == crashtest.EventsLayout {
		steps = appends
	}
	if d, ok := driver.Lookup(c.Engine); ok && d.Capabilities.WALCheckpoint {
		params = append(params, "checkpoint", "manual")
	}
	db, err := store.Open(ctx, c.URL("store", params...), nil)
	if err != nil {
		return nil, err
	}
	killed := rng.IntN(3) == 0
	err = contents.Fill(ctx, db, steps)
	if err == nil && killed {
		if _, err = driver.Checkpoint(ctx, db.Engine(), true); errors.Is(err, store.ErrUnsupported) {
			err = nil
		}
	}
	if err == nil {
		err = contents.Fill(ctx, db, steps)
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

// aimAt selects the database files worth hitting: tables, indexes and the log.
// Most of a server's directory is its own catalogue.
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

// fileKind returns the kind of a file.
func fileKind(path string) string {
	switch {
	case strings.Contains(path, "pg_wal"), strings.HasSuffix(path, "wal"):
		return "log"
	case strings.HasSuffix(path, ".guard"):
		return "guard"
	}
	return "database"
}

// examine opens a damaged store. A panic counts as the worst kind of wrong
// answer.
func examine(ctx context.Context, url string, contents *crashtest.Contents, blind bool) (outcome, why string) {
	defer func() {
		if p := recover(); p != nil {
			outcome, why = silent, fmt.Sprintf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	db, err := store.Open(ctx, url, nil)
	if err != nil {
		return "refused", err.Error()
	}
	defer db.Close()
	report, err := db.Check(ctx, nil)
	checked := errors.Join(err, report.Err())
	if blind {
		checked = nil
	}
	behind, err := contents.Verify(ctx, db)
	switch {
	case errors.Is(checked, store.ErrCorrupt):
		return "found", checked.Error()
	case checked != nil:
		return "unchecked", checked.Error()
	case errors.Is(err, crashtest.ErrViolation):
		return silent, err.Error()
	case err != nil:
		return "reading", err.Error()
	case behind:
		return "tail", ""
	}
	return harmless, ""
}
