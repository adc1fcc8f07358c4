package compact

import (
	"context"

	"github.com/varvedb/varve/store/driver"
)

// Prune implements layout.Layout.
func (l *Layout) Prune(ctx context.Context, tx driver.Tx, before uint64) error {
	return l.rework(ctx, tx, "prune", before, func(p *progress) error {
		at := []any{int64(before)}
		err := l.pages(ctx, tx, "scan_current_expired", at, false, func(list []*version) error {
			if err := l.dropCurrent(ctx, tx, p, list, none); err != nil {
				return err
			}
			return l.forget(ctx, tx, p, list, nil)
		})
		if err != nil {
			return err
		}
		return l.pages(ctx, tx, "scan_closed_before", at, true, func(list []*version) error {
			for _, v := range list {
				if _, err := tx.Exec(ctx, l.sql["delete_closed"], v.id, v.from); err != nil {
					return err
				}
			}
			return l.forget(ctx, tx, p, list, list)
		})
	})
}

// forget removes what versions that are gone have left behind: payloads that no
// other version of their entities has, keys of entities of which nothing is
// left, and what closed ones have in past postings.
func (l *Layout) forget(ctx context.Context, tx driver.Tx, p *progress, list, closed []*version) error {
	left, err := l.versionsOf(ctx, tx, list)
	if err != nil {
		return err
	}
	kept := map[int64]bool{}
	had := map[int64]map[term]bool{} // terms of the closed versions that are left
	for _, v := range left {
		kept[v.content] = true
		if v.to == none {
			continue
		}
		terms, err := v.terms()
		if err != nil {
			return err
		}
		if had[v.id] == nil {
			had[v.id] = map[term]bool{}
		}
		for _, t := range terms {
			had[v.id][t] = true
		}
	}
	var contents []any
	for _, v := range list {
		if v.content != 0 && !kept[v.content] {
			kept[v.content] = true
			contents = append(contents, v.content)
		}
	}
	if err := l.eachExec(ctx, tx, "delete_contents", 1, contents); err != nil {
		return err
	}
	var edits []edit
	for _, v := range closed {
		terms, err := v.terms()
		if err != nil {
			return err
		}
		for _, t := range terms {
			if !had[v.id][t] {
				edits = append(edits, edit{term: t, past: true, id: v.id})
			}
		}
	}
	if err := l.addRun(ctx, tx, p, edits); err != nil {
		return err
	}
	return l.dropKeys(ctx, tx, list)
}

// versionsOf returns every stored version of the entities that versions are of.
// The end of a current one is none.
func (l *Layout) versionsOf(ctx context.Context, q driver.Querier, list []*version) (all []*version, err error) {
	seen := map[[2]int64]bool{}
	err = l.eachCurrent(ctx, q, list, func(v *version) error {
		if !seen[[2]int64{v.id, v.from}] {
			seen[[2]int64{v.id, v.from}] = true
			v.to = none
			all = append(all, v)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return all, l.eachQuery(ctx, q, "closed_by_id", 1, idsOf(list), nil, func(rows driver.Rows) error {
		var to int64
		v, err := scanVersion(rows, &to)
		if err == nil && !seen[[2]int64{v.id, v.from}] {
			seen[[2]int64{v.id, v.from}] = true
			v.to = to
			all = append(all, v)
		}
		return err
	})
}
