package compact

import (
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/varvedb/varve/internal/lsm"
	"github.com/varvedb/varve/store/driver"
)

// tip identifies a state of the log and the tables: a hash over everything that was
// written. Merging does not change it.
type tip [16]byte

// next returns the tip after one more thing was written.
func (t tip) next(what string, parts ...[]byte) (n tip) {
	h := sha256.New()
	h.Write(t[:])
	h.Write([]byte(what))
	for _, p := range parts {
		h.Write(p)
	}
	copy(n[:], h.Sum(nil))
	return n
}

func tipOf(stored []byte) (tip, error) {
	if len(stored) != len(tip{}) {
		return tip{}, fmt.Errorf("%w: tip of %d bytes", driver.ErrCorrupt, len(stored))
	}
	return tip(stored), nil
}

// none stands for no block.
const none = -1

// progress is the row that a view reads first, and once.
type progress struct {
	merged       int64 // the blocks up to it lie in the tables
	merging      int64 // the last block of the batch that is being merged, or none
	step         int64 // of this batch: items that are written already
	last         int64 // the last block that changed something, or none
	tip          tip
	nextID       int64
	nextContent  int64
	names        int64  // the highest number of a name
	lastSequence uint64 // the highest of an entity
	unordered    int64  // 1: the order of ids is not that of sequences
	backlog      int64  // changes in the log
	live         int64  // rows of current_versions
	tree         lsm.Tree
	keys         recentKeys // stored behind the tree
}

func (p *progress) values() []any {
	return []any{p.merged, p.merging, p.step, p.last, p.tip[:], p.nextID, p.nextContent, p.names,
		p.lastSequence, p.unordered, p.backlog, p.live, p.keys.encode(p.tree.Encode())}
}

func (l *Layout) readProgress(ctx context.Context, q driver.Querier) (p progress, err error) {
	found := false
	var tip, runs []byte
	err = l.sql.Each(ctx, q, "progress", nil, func(rows driver.Rows) error {
		found = true
		return rows.Scan(&p.merged, &p.merging, &p.step, &p.last, &tip, &p.nextID, &p.nextContent, &p.names,
			&p.lastSequence, &p.unordered, &p.backlog, &p.live, &runs)
	})
	if err == nil && !found {
		err = fmt.Errorf("%w: no row says how far the log is merged", driver.ErrCorrupt)
	}
	if err != nil {
		return p, err
	}
	if p.tip, err = tipOf(tip); err != nil {
		return p, err
	}
	return p, p.decodeRuns(runs)
}

// decodeRuns reads the column that has the tree and the keys that wait.
func (p *progress) decodeRuns(stored []byte) (err error) {
	if p.tree, stored, err = lsm.Decode(stored); err == nil {
		p.keys, err = decodeKeys(stored)
	}
	return err
}

func (l *Layout) writeProgress(ctx context.Context, tx driver.Tx, p *progress) error {
	l.debt.set(p)
	return l.sql.Exec(ctx, tx, "set_progress", p.values()...)
}
