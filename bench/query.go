package bench

import (
	"context"
	"fmt"
	"hash/maphash"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/query"
)

// QueryConfig is a closed loop of one query on one open snapshot at the head.
type QueryConfig struct {
	Query  NamedQuery
	Answer Answer // as Answers gives it
	Loop   Loop   // how many times; nil means once
}

// Query runs a query to its end again and again and records the latency of
// each run. It compares the keys and their order with the answer and fails with
// ErrMismatch.
func Query(ctx context.Context, ents *store.Entities, cfg QueryConfig) (res Result, err error) {
	expr, err := query.Parse(cfg.Query.Text)
	if err == nil {
		res, err = atHead(ctx, ents, cfg.Loop, func(snap *store.Snapshot, res *Result) error { return cfg.ask(ctx, snap, expr, res) })
	}
	if err != nil {
		err = fmt.Errorf("query %s: %w", cfg.Query.Name, err)
	}
	return res, err
}

// ask runs a query to its end.
func (cfg *QueryConfig) ask(ctx context.Context, snap *store.Snapshot, expr query.Expr, res *Result) error {
	var got Answer
	var h maphash.Hash
	h.SetSeed(hashSeed)
	err := res.Time(func() error {
		for e, err := range snap.Query(ctx, expr, &store.QueryOptions{Limit: cfg.Query.Limit}) {
			if err != nil {
				return err
			}
			got.Count++
			h.Write(e.Key[:])
		}
		return nil
	})
	res.Entities += uint64(got.Count)
	if got.keys = h.Sum64(); err == nil && got != cfg.Answer {
		err = mismatch("%d entities, want %d; keys and order the same: %t", got.Count, cfg.Answer.Count, got.keys == cfg.Answer.keys)
	}
	return err
}
