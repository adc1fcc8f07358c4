package bench

import (
	"context"
	"fmt"
	"hash/maphash"
	"time"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/query"
)

// QueryConfig is a closed loop of one query on one open snapshot at the head.
type QueryConfig struct {
	Query  NamedQuery
	Answer Answer      // as Answers gives it
	Parts  store.Parts // what to fetch of each match; zero means everything
	Loop   Loop        // how many times; nil means once
}

// Query runs a query to its end again and again and records the latency of
// each run. It compares the keys and their order with the answer and fails with
// ErrMismatch.
func Query(ctx context.Context, ents *store.Entities, cfg QueryConfig) (Result, error) {
	res := NewResult()
	expr, err := query.Parse(cfg.Query.Text)
	if err != nil {
		return res, fmt.Errorf("query %s: %w", cfg.Query.Name, err)
	}
	snap, err := ents.At(ctx, store.Head)
	if err != nil {
		return res, fmt.Errorf("query %s: %w", cfg.Query.Name, err)
	}
	defer snap.Close()
	opts := &store.QueryOptions{Limit: cfg.Query.Limit, Parts: cfg.Parts}
	for loop := orOnce(cfg.Loop); loop.Loop(); {
		start := time.Now()
		got, err := ask(ctx, snap, expr, opts)
		res.Latency.Record(time.Since(start))
		if err == nil && got != cfg.Answer {
			err = mismatch("%d entities, want %d; keys and order the same: %t", got.Count, cfg.Answer.Count, got.keys == cfg.Answer.keys)
		}
		if err != nil {
			return res, fmt.Errorf("query %s: %w", cfg.Query.Name, err)
		}
		res.Entities += uint64(got.Count)
	}
	return res, nil
}

// ask runs a query to its end.
func ask(ctx context.Context, snap *store.Snapshot, expr query.Expr, opts *store.QueryOptions) (a Answer, err error) {
	var h maphash.Hash
	h.SetSeed(hashSeed)
	for e, err := range snap.Query(ctx, expr, opts) {
		if err != nil {
			return a, err
		}
		a.Count++
		h.Write(e.Key[:])
	}
	a.keys = h.Sum64()
	return a, nil
}
