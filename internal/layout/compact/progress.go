package compact

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"github.com/varvedb/varve/store/driver"
)

// tip names a state of the log and the tables: a hash over everything written
// up to it. Merging does not change it.
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

// none is a block number that is no block's.
const none = -1

// progress is the row that a view reads first.
type progress struct {
	merged       int64 // the blocks up to it lie in the tables
	merging      int64 // the last block of the batch that is being merged, or none
	step         int64 // of this batch: what is done already
	last         int64 // the last block that changed something, or none
	tip          tip
	nextID       int64
	nextContent  int64
	names        int64  // the highest number of a name
	lastSequence uint64 // the highest of an entity
	unordered    int64  // 1: the order of ids is not that of sequences
	backlog      int64  // changes in the log
	live         int64  // rows of current_versions
	trees        forest
}

func newProgress() progress {
	return progress{merged: none, merging: none, last: none, nextID: 1, nextContent: 1, names: firstName - 1}
}

func (p *progress) values() []any {
	return []any{p.merged, p.merging, p.step, p.last, p.tip[:], p.nextID, p.nextContent, p.names,
		p.lastSequence, p.unordered, p.backlog, p.live, p.trees.encode()}
}

func (l *Layout) readProgress(ctx context.Context, q driver.Querier) (p progress, err error) {
	rows, err := q.Query(ctx, l.sql["progress"])
	if err != nil {
		return p, fmt.Errorf("read progress: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	if !rows.Next() {
		if err := rows.Err(); err != nil {
			return p, fmt.Errorf("read progress: %w", err)
		}
		return p, fmt.Errorf("%w: no row says how far the log is merged", driver.ErrCorrupt)
	}
	var t []byte
	var runs []byte
	if err := rows.Scan(&p.merged, &p.merging, &p.step, &p.last, &t, &p.nextID, &p.nextContent, &p.names,
		&p.lastSequence, &p.unordered, &p.backlog, &p.live, &runs); err != nil {
		return p, fmt.Errorf("read progress: %w", err)
	}
	if len(t) != len(p.tip) {
		return p, fmt.Errorf("%w: tip of %d bytes", driver.ErrCorrupt, len(t))
	}
	p.tip = tip(t)
	p.trees, err = l.forests.decode(runs)
	return p, err
}

// left is how much was put off, in changes: what is not merged, and what is to be
// compacted, where a posting's worth of pages is as much work as a change.
func (p *progress) left() int { return int(p.backlog + p.compacting()) }

// compacting is the share of compaction in left.
func (p *progress) compacting() int64 { return (p.owed() + 3) / 4 }

// batch tells batches that are being merged apart.
func (p *progress) batch() int64 { return p.trees[currentTree].writing }

// counting returns the run of the batch that is being merged that counts already, or 0.
func (p *progress) counting() int64 { return p.trees[currentTree].written }

// crowded tells whether a tree has so many runs that they are compacted at once.
func (p *progress) crowded() bool {
	return slices.ContainsFunc(p.trees[:], func(t tree) bool { return len(t.runs) > maxRuns })
}

// owed is how many pages of postings are to be written to compact them, about.
func (p *progress) owed() (n int64) {
	for i := range p.trees {
		n += p.trees[i].owed()
	}
	return n
}

func (l *Layout) writeProgress(ctx context.Context, tx driver.Tx, p *progress) error {
	if _, err := tx.Exec(ctx, l.sql["set_progress"], p.values()...); err != nil {
		return fmt.Errorf("record progress: %w", err)
	}
	return nil
}
