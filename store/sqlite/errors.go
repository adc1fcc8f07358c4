package sqlite

import (
	"errors"
	"fmt"
	"syscall"

	sqlite3 "github.com/mattn/go-sqlite3"

	"github.com/varvedb/varve/store/driver"
)

// mapError joins SQLite's result codes (https://www.sqlite.org/rescode.html)
// with the contract's sentinels.
func mapError(err error) error {
	var native sqlite3.Error
	if !errors.As(err, &native) {
		return err
	}
	if sentinel := sentinel(native); sentinel != nil {
		return fmt.Errorf("%w: %w", sentinel, err)
	}
	return err
}

func sentinel(err sqlite3.Error) error {
	switch err.Code {
	case sqlite3.ErrBusy, sqlite3.ErrLocked:
		return driver.ErrLocked
	case sqlite3.ErrCorrupt, sqlite3.ErrNotADB:
		return driver.ErrCorrupt
	case sqlite3.ErrNomem:
		return driver.ErrMemory
	case sqlite3.ErrFull:
		return driver.ErrDiskFull
	case sqlite3.ErrReadonly, sqlite3.ErrPerm:
		return driver.ErrReadOnly
	case sqlite3.ErrConstraint:
		return driver.ErrConflict
	case sqlite3.ErrIoErr, sqlite3.ErrCantOpen:
		switch err.SystemErrno {
		case syscall.ENOSPC, syscall.EDQUOT:
			return driver.ErrDiskFull
		case syscall.EROFS, syscall.EACCES:
			return driver.ErrReadOnly
		}
	}
	return nil
}
