package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/varvedb/varve/internal/sqlstore"
	"github.com/varvedb/varve/store/driver"
)

// vacuumSettings are set for a table and, under the name toast, for its long
// values. With the server's defaults autovacuum frees some 40 MB a second, all
// its workers together. Blocks that are rewound and written again leave more
// than that behind, so the files would grow without end.
const vacuumSettings = "autovacuum_vacuum_cost_delay = 0, autovacuum_vacuum_scale_factor = 0.05"

// untunedText returns the tables of the list that belong to this user and have
// no such setting. Settings by another hand stay.
const untunedText = `SELECT relname
FROM pg_class
WHERE relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema())
  AND relkind = 'r'
  AND pg_has_role(relowner, 'USAGE')
  AND coalesce(array_to_string(reloptions, ','), '') NOT LIKE '%autovacuum_vacuum_cost_delay=%'
ORDER BY relname`

// Tune implements driver.Tuner: autovacuum must keep up with deletions.
func (e *engine) Tune(ctx context.Context, tables []*driver.Table) error {
	err := e.WithSpare(ctx, func(c *sqlstore.Conn) error {
		untuned, err := c.QueryTexts(ctx, untunedText)
		if err != nil {
			return err
		}
		for _, t := range tables {
			if !slices.Contains(untuned, t.Name) {
				continue
			}
			err := c.ExecOnce(ctx, "ALTER TABLE "+t.Name+" SET ("+vacuumSettings+", toast."+strings.ReplaceAll(vacuumSettings, ", ", ", toast.")+")")
			// A VACUUM or ANALYZE by hand has the table, or the server is a relative of
			// Postgres that vacuums in its own way.
			if errors.Is(err, driver.ErrLocked) || errors.Is(err, driver.ErrUnsupported) {
				return nil
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("set autovacuum for the tables: %w", err)
	}
	return nil
}
