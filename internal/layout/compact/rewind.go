package compact

import (
	"context"
	"encoding/binary"
	"slices"

	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
)

// versionPage is how many versions Rewind and Prune take at once.
const versionPage = 512

// Rewind implements layout.Layout. It merges the log first and then works on
// the tables alone.
func (l *Layout) Rewind(ctx context.Context, tx driver.Tx, _, to uint64) error {
	return l.rework(ctx, tx, "rewind", to, func(p *progress) error {
		at := int64(to)
		// Not the block itself: there may be none of that number, and the next
		// may have a lower one.
		highest, err := driver.QueryInt(ctx, tx, l.sql["highest_block"], at)
		if err != nil {
			return err
		}
		p.last, p.merged = highest, highest
		if err := l.dropCurrentAbove(ctx, tx, p, at); err != nil {
			return err
		}
		if err := l.reopenAbove(ctx, tx, p, at, highest); err != nil {
			return err
		}
		p.lastSequence = min(p.lastSequence, entity.MakeSequence(to+1, 0, 0)-1)
		return l.dropContents(ctx, tx)
	})
}

// rework merges the log, runs f and gives the store a new tip.
func (l *Layout) rework(ctx context.Context, tx driver.Tx, what string, block uint64, f func(p *progress) error) error {
	if err := l.drain(ctx, tx); err != nil {
		return err
	}
	l.setScratch(nil)
	p, err := l.readProgress(ctx, tx)
	if err != nil {
		return err
	}
	if err := f(&p); err != nil {
		return err
	}
	p.tip = p.tip.next(what, binary.BigEndian.AppendUint64(nil, block))
	return l.writeProgress(ctx, tx, &p)
}

// pages reads a statement's versions page by page, in the order of ids. A page
// holds all versions that the statement gives of its ids.
func (l *Layout) pages(ctx context.Context, q driver.Querier, name string, more []any, closed bool, f func(list []*version) error) error {
	above := int64(0)
	for limit := int64(versionPage); ; {
		var list []*version
		args := append(append([]any{above}, more...), limit)
		err := eachRow(ctx, q, l.sql[name], args, func(rows driver.Rows) error {
			var to int64
			var dest []any
			if closed {
				dest = []any{&to}
			}
			v, err := scanVersion(rows, dest...)
			if err == nil {
				v.to = to
				list = append(list, v)
			}
			return err
		})
		if err != nil || len(list) == 0 {
			return err
		}
		full := int64(len(list)) == limit
		if full {
			last := list[len(list)-1].id
			n := len(list)
			for n > 0 && list[n-1].id == last {
				n--
			}
			if n == 0 {
				limit *= 2 // one entity's versions fill the page
				continue
			}
			list = list[:n]
		}
		above = list[len(list)-1].id
		if err := f(list); err != nil || !full {
			return err
		}
	}
}

// dropCurrentAbove removes the current versions that begin above a block.
func (l *Layout) dropCurrentAbove(ctx context.Context, tx driver.Tx, p *progress, at int64) error {
	return l.pages(ctx, tx, "scan_current_above", []any{at}, false, func(list []*version) error {
		return l.dropCurrent(ctx, tx, p, list, at)
	})
}

// dropCurrent removes current versions with their postings, and the keys of
// those that no closed version is left of up to a block.
func (l *Layout) dropCurrent(ctx context.Context, tx driver.Tx, p *progress, list []*version, at int64) error {
	var ids []any
	for _, v := range list {
		ids = append(ids, v.id)
	}
	if err := l.editVersions(ctx, tx, p, list, false); err != nil {
		return err
	}
	if err := l.eachExec(ctx, tx, "delete_current", 1, ids); err != nil {
		return err
	}
	p.live -= int64(len(list))
	known := map[int64][]*version{}
	err := l.eachQuery(ctx, tx, "closed_by_id", 1, ids, nil, func(rows driver.Rows) error {
		var to int64
		v, err := scanVersion(rows, &to)
		if err == nil && v.from <= at {
			known[v.id] = append(known[v.id], v)
		}
		return err
	})
	if err == nil {
		err = l.keepPast(ctx, tx, p, list, known)
	}
	if err != nil {
		return err
	}
	for _, v := range list {
		if known[v.id] == nil {
			if _, err := tx.Exec(ctx, l.sql["delete_key"], hashKey(v.key), v.id); err != nil {
				return err
			}
		}
	}
	return nil
}

// keepPast makes past postings of what closed versions have in common with the
// current ones that are dropped: as long as those were there, that stood in the
// current postings alone.
func (l *Layout) keepPast(ctx context.Context, tx driver.Tx, p *progress, dropped []*version, closed map[int64][]*version) error {
	var edits []edit
	for _, v := range dropped {
		terms, err := v.terms()
		if err != nil {
			return err
		}
		var kept []term
		for _, c := range closed[v.id] {
			had, err := c.terms()
			if err != nil {
				return err
			}
			for _, t := range had {
				if slices.Contains(terms, t) && !slices.Contains(kept, t) {
					kept = append(kept, t)
					edits = append(edits, edit{term: t, past: true, id: v.id, add: true})
				}
			}
		}
	}
	return l.addRun(ctx, tx, p, edits)
}

// editVersions adds versions to the current postings or takes them out.
func (l *Layout) editVersions(ctx context.Context, tx driver.Tx, p *progress, list []*version, add bool) error {
	var edits []edit
	for _, v := range list {
		terms, err := v.terms()
		if err != nil {
			return err
		}
		for _, t := range terms {
			edits = append(edits, edit{term: t, id: v.id, add: add})
		}
	}
	return l.addRun(ctx, tx, p, edits)
}

// reopenAbove removes closed versions that begin above a block and makes those
// that end above it current again, with those that run out above the highest
// block that is left: at it they can be seen. What they left in past postings stays: it
// narrows queries down less than it could.
func (l *Layout) reopenAbove(ctx context.Context, tx driver.Tx, p *progress, at, highest int64) error {
	return l.pages(ctx, tx, "scan_closed_above", []any{highest, at}, true, func(list []*version) error {
		var again, gone []*version
		var rows []any
		for _, v := range list {
			if _, err := tx.Exec(ctx, l.sql["delete_closed"], v.id, v.from); err != nil {
				return err
			}
			if v.from > at {
				gone = append(gone, v)
				continue
			}
			again = append(again, v)
			rows = append(rows, v.id, v.from, v.expires, v.key[:], v.content, v.data)
		}
		if err := tx.Insert(ctx, currentTable, rows); err != nil {
			return err
		}
		p.live += int64(len(again))
		if err := l.editVersions(ctx, tx, p, again, true); err != nil {
			return err
		}
		return l.dropKeys(ctx, tx, gone)
	})
}

// dropKeys removes the keys of entities of which nothing is left.
func (l *Layout) dropKeys(ctx context.Context, tx driver.Tx, list []*version) error {
	keys := map[int64]*version{}
	var ids []any
	for _, v := range list {
		if keys[v.id] == nil {
			keys[v.id] = v
			ids = append(ids, v.id)
		}
	}
	for _, name := range []string{"current_by_id", "closed_by_id"} {
		err := l.eachQuery(ctx, tx, name, 1, ids, nil, func(rows driver.Rows) error {
			var to int64
			var dest []any
			if name == "closed_by_id" {
				dest = []any{&to}
			}
			v, err := scanVersion(rows, dest...)
			if err == nil {
				delete(keys, v.id)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	for id, v := range keys {
		if _, err := tx.Exec(ctx, l.sql["delete_key"], hashKey(v.key), id); err != nil {
			return err
		}
	}
	return nil
}

// dropContents removes payloads that came after those of every version: numbers
// are given out in the order of blocks.
func (l *Layout) dropContents(ctx context.Context, tx driver.Tx) error {
	highest, err := driver.QueryInt(ctx, tx, l.sql["highest_content"])
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, l.sql["drop_contents"], highest)
	return err
}
