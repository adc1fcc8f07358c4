package store

import (
	"errors"

	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
)

// The errors that callers branch on, with errors.Is. The rest of a message may
// change.
var (
	ErrNotFound    = entity.ErrNotFound // no entity with the key is visible
	ErrExists      = entity.ErrExists   // an entity with the key is live
	ErrInvalid     = entity.ErrInvalid  // a malformed block, query or argument
	ErrClosed      = driver.ErrClosed
	ErrLocked      = driver.ErrLocked
	ErrConflict    = driver.ErrConflict
	ErrCorrupt     = driver.ErrCorrupt
	ErrReadOnly    = driver.ErrReadOnly
	ErrNotExist    = driver.ErrNotExist
	ErrUnsupported = driver.ErrUnsupported

	// ErrReaderExpired: a snapshot was ended because it held back a checkpoint.
	ErrReaderExpired = driver.ErrReaderExpired

	// ErrUnavailable: the engine's server cannot be reached; try again later.
	ErrUnavailable = driver.ErrUnavailable

	// ErrUnknownOutcome: the connection broke during a commit; read the head.
	ErrUnknownOutcome = driver.ErrUnknownOutcome

	// ErrBlockOrder: a block is not above the head.
	ErrBlockOrder = errors.New("block is not above the head")
	// ErrBlockRange: a block above the head or below the horizon.
	ErrBlockRange = errors.New("block is out of range")
	// ErrRewound: the block of a cursor is no longer part of the history. Such an error
	// wraps ErrBlockRange, too.
	ErrRewound = errors.New("the store was rewound meanwhile")
	// ErrLayout: the database holds another layout than the one asked for, or no store.
	ErrLayout = errors.New("another layout")
	// ErrHistory: the blocks or events to import do not continue the store.
	ErrHistory = errors.New("the histories differ")
)

var errNoStore = driver.Of(ErrLayout, errors.New("the database holds no Varve store"))
