package rebac

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/varvedb/varve/schemas"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

// Closure says how the groups that a user is in through others are found.
type Closure string

// The ways of the closure.
const (
	Materialised Closure = "materialised" // a table, built after ingest
	OnTheFly     Closure = "on-the-fly"   // a recursive query in each question
)

// Closures are both.
var Closures = []Closure{Materialised, OnTheFly}

// DefaultBatch is how many rows are in a transaction of ingest, as in the
// document.
const DefaultBatch = 10_000

// Store is a data set in an open database.
type Store struct {
	db     *store.DB
	schema schemas.Rebac
	calls  map[call]*statement
}

// call says what a statement answers.
type call struct {
	kind       Kind
	permission Permission
	closure    Closure
}

// statement is SQL with the number of its arguments.
type statement struct {
	text string
	args int
}

// The names of statements by kind of question; those of the closure on the fly
// have an ending.
var prefixes = map[Kind]string{Check: "check_", ListResources: "list_", ListUsers: "users_"}

var endings = map[Closure]string{Materialised: "", OnTheFly: "_fly"}

// New returns a store over a database, which is empty or holds what Ingest has
// put there. The caller closes the database.
func New(db *store.DB) (*Store, error) {
	schema, err := schemas.RebacTables(string(db.Engine().Info().Dialect))
	if err != nil {
		return nil, err
	}
	s := &Store{db: db, schema: schema, calls: map[call]*statement{}}
	for kind, prefix := range prefixes {
		for _, p := range []Permission{Manage, View} {
			for closure, ending := range endings {
				text, ok := schema.Statements[prefix+string(p)+ending]
				if !ok {
					return nil, fmt.Errorf("schema rebac has no statement %s%s%s", prefix, p, ending)
				}
				s.calls[call{kind, p, closure}] = &statement{text: text, args: strings.Count(text, "?")}
			}
		}
	}
	return s, nil
}

// write runs f in a transaction.
func (s *Store) write(ctx context.Context, f func(ctx context.Context, tx driver.Tx) error) error {
	tx, err := s.db.Engine().Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback() // for a panic in f
	if err := f(context.WithoutCancel(ctx), tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit(ctx)
}

// CreateTables makes the tables, without indexes.
func (s *Store) CreateTables(ctx context.Context) error {
	return s.write(ctx, func(ctx context.Context, tx driver.Tx) error {
		for _, text := range s.schema.Tables {
			if _, err := tx.Exec(ctx, text); err != nil {
				return fmt.Errorf("create tables: %w", err)
			}
		}
		return nil
	})
}

// CreateIndexes makes the indexes, and gathers the planner's statistics on engines
// that keep them.
func (s *Store) CreateIndexes(ctx context.Context) error {
	return s.write(ctx, func(ctx context.Context, tx driver.Tx) error {
		for _, index := range s.schema.Indexes {
			if _, err := tx.Exec(ctx, index.SQL); err != nil {
				return fmt.Errorf("index %s: %w", index.Name, err)
			}
		}
		return s.analyze(ctx, tx)
	})
}

func (s *Store) analyze(ctx context.Context, tx driver.Tx) error {
	if !s.db.Engine().Capabilities().Analyze {
		return nil
	}
	if _, err := tx.Exec(ctx, s.schema.Statements["analyze"]); err != nil {
		return fmt.Errorf("analyze: %w", err)
	}
	return nil
}

// BuildClosure fills the table of the closure anew by one statement, and returns
// how long that took, its commit and the statistics included.
func (s *Store) BuildClosure(ctx context.Context) (time.Duration, error) {
	start := time.Now()
	err := s.write(ctx, func(ctx context.Context, tx driver.Tx) error {
		for _, name := range []string{"clear_closure", "build_closure"} {
			if _, err := tx.Exec(ctx, s.schema.Statements[name]); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		return s.analyze(ctx, tx)
	})
	return time.Since(start), err
}
