package store

import (
	"context"
	"fmt"

	"github.com/varvedb/varve/store/driver"
)

// Lease takes the database's one lease, which servers and imports ask for before
// they write; see driver.Upkeep. It fails with ErrUnsupported on engines that
// have none. The caller releases it before Close.
func (db *DB) Lease(ctx context.Context) (driver.Lease, error) {
	if db.ro {
		return nil, fmt.Errorf("lease: %w", ErrReadOnly)
	}
	lease, err := db.engine.Lease(ctx)
	if err != nil {
		return nil, fmt.Errorf("lease: %w", err)
	}
	return lease, nil
}

// ReadOnly tells whether the database was opened for reading only.
func (db *DB) ReadOnly() bool { return db.ro }
