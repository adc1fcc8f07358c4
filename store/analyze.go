package store

import (
	"context"
	"fmt"

	"github.com/varvedb/varve/internal/layout"
	"github.com/varvedb/varve/store/driver"
)

// analyzeFloor is the number of versions below which statistics are not worth
// gathering again.
const analyzeFloor = 1000

// grown counts new versions and gathers the planner's statistics again when
// they have doubled, on layouts that use them. Statistics are only a hint: the
// block is committed already, and a failure is made up for at the next
// doubling.
func (e *Entities) grown(ctx context.Context, versions int) {
	if e.analyzable() == nil {
		return
	}
	e.mu.Lock()
	e.written += uint64(versions)
	due := e.written > max(e.analyzed, analyzeFloor)
	e.mu.Unlock()
	if !due || e.analyze(ctx) != nil {
		return
	}
	e.mu.Lock()
	e.analyzed += e.written
	e.written = 0
	e.mu.Unlock()
}

// analyzable returns the layout when it lives on statistics, or nil.
func (e *Entities) analyzable() layout.Analyzed {
	if a, ok := e.layout.(layout.Analyzed); ok && a.Analyzed() {
		return a
	}
	return nil
}

func (e *Entities) analyze(ctx context.Context) error {
	return e.db.writeBulk(ctx, func(ctx context.Context, tx driver.Tx) error { return e.analyzable().Analyze(ctx, tx) })
}

// analyzeAtOpen gathers statistics for the versions that a store holds already.
func (e *Entities) analyzeAtOpen(ctx context.Context) error {
	if e.analyzable() == nil || e.db.ro {
		return nil
	}
	var versions uint64
	err := e.db.readBulk(ctx, func(ctx context.Context, q driver.Querier) error {
		view, err := e.layout.View(ctx, q, 0)
		if err != nil {
			return err
		}
		tables, err := view.Rows(ctx)
		if err == nil {
			versions = tables[len(tables)-1].Rows
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("count versions: %w", err)
	}
	if versions == 0 {
		return nil
	}
	e.mu.Lock()
	e.analyzed = versions
	e.mu.Unlock()
	return e.analyze(ctx)
}
