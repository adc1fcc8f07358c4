package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/varvedb/varve/store/driver"
)

// The numbers kept with driver.Keeper. By them the store detects that it has
// lost its last blocks or events, for example with its log.
const (
	keptEvents = iota // position of the last event that is durable
	keptBlocks        // see blockMark
)

// blockMark is the number that is kept for blocks: how often the store was
// rewound, and the last block plus one. A commit replaces only the mark that it
// found in its transaction, so that a late update does not undo a rewind.
type blockMark uint64

const (
	markBits  = 48
	markBlock = 1<<markBits - 1
)

func (m blockMark) at(next uint64) blockMark { return m&^markBlock | blockMark(next) }

// next returns the block after the marked one; zero when none is marked.
func (m blockMark) next() uint64 { return uint64(m & markBlock) }

// keeper returns the engine as a Keeper, or nil.
func (db *DB) keeper() driver.Keeper {
	k, _ := db.engine.(driver.Keeper)
	return k
}

// mark returns the kept mark of the blocks. The caller is in a transaction.
func (db *DB) mark() blockMark {
	if k := db.keeper(); k != nil {
		return blockMark(k.Kept(keptBlocks))
	}
	return 0
}

// keepRewind records, before a rewind, that the blocks after a head will go. If
// the rewind fails, the mark is too low, which is harmless.
func (db *DB) keepRewind(head BlockHeader) {
	k := db.keeper()
	for k != nil {
		found := blockMark(k.Kept(keptBlocks))
		next := uint64(0)
		if !head.Empty {
			next = min(head.Number+1, found.next())
		}
		if k.Keep(keptBlocks, uint64(found), uint64((found + 1<<markBits).at(next))) {
			return
		}
	}
}

// keepEvents records that events up to a position are durable.
func (db *DB) keepEvents(at uint64) {
	for k := db.keeper(); k != nil && at > 0; {
		if found := k.Kept(keptEvents); found >= at || k.Keep(keptEvents, found, at) {
			return
		}
	}
}

// checkComplete fails with ErrCorrupt when blocks or events are missing that an earlier
// process recorded as durable. Each opening checks both, because a write would
// overwrite the part of the log that has the missing rows. The log is not
// changed.
func (db *DB) checkComplete(ctx context.Context) error {
	k := db.keeper()
	if k == nil {
		return nil
	}
	err := db.checkKept(ctx, k, keptBlocks, "block numbers", db.nextBlock)
	if err == nil {
		err = db.checkKept(ctx, k, keptEvents, "event positions", db.lastEvent)
	}
	if errors.Is(err, ErrCorrupt) {
		k.Leave()
	}
	return err
}

// checkKept checks one kind of data. Has returns how far the store has come;
// the record is read in the same view, because another process may create the
// store meanwhile.
func (db *DB) checkKept(ctx context.Context, k driver.Keeper, i int, what string, has func(context.Context, driver.Querier, map[string]string) (uint64, error)) error {
	for {
		word := k.Kept(i)
		wants := word
		if i == keptBlocks {
			wants = blockMark(word).next()
		}
		if wants == 0 {
			return nil
		}
		var is uint64
		err := db.read(ctx, func(ctx context.Context, q driver.Querier) error {
			recorded, err := db.meta.recorded(ctx, q)
			if err == nil {
				is, err = has(ctx, q, recorded)
			}
			return err
		})
		switch {
		case err != nil:
			return err
		case is >= wants:
			k.Confirm(i)
			return nil
		case k.Kept(i) == word: // if not, it was rewound meanwhile
			return fmt.Errorf("%w: a process that was killed had committed %d %s, and %d are there: the end of the store is lost, as when its log is removed; "+
				"put back what is missing or restore a backup; to go on with what is left, remove the file beside the database that ends with -durable",
				ErrCorrupt, wants, what, is)
		}
	}
}

// nextBlock returns the number after the last block's; zero without blocks.
func (db *DB) nextBlock(ctx context.Context, q driver.Querier, recorded map[string]string) (uint64, error) {
	if recorded[metaLayout] == "" {
		return 0, nil
	}
	head, err := db.meta.head(ctx, q)
	if err != nil || head.Empty {
		return 0, err
	}
	return head.Number + 1, nil
}

// lastEvent returns the position of the last event; zero without events.
func (db *DB) lastEvent(ctx context.Context, q driver.Querier, recorded map[string]string) (uint64, error) {
	if recorded[metaEventLayout] == "" {
		return 0, nil
	}
	log, err := db.eventLog(recorded)
	if err != nil {
		return 0, err
	}
	return log.Head(ctx, q)
}
