package lab

import (
	"context"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/pace"
)

// operation is one workload on a data set of typical entities.
func (l *Lab) operation(name, layout string, f func(ctx context.Context, d *bench.Dataset, cp *bench.Copy) (bench.Result, error), more ...string) Variant {
	d := bench.Dataset{
		Engine: l.Engine, Layout: layout, Profile: bench.Typical,
		Gen: bench.GenOptions{Entities: l.scaled(800_000, 2_000), PerBlock: perBlock, Seed: l.Seed},
	}
	return Variant{name, l.on(layout, d.Profile.Name, more...), func(ctx context.Context, r *Record) error {
		return l.withDataset(ctx, d, l.storeOptions(), r, func(cp *bench.Copy) error {
			return l.phase(ctx, cp, temperature{fill: true}, r, func(ctx context.Context) (*pace.Outcome, error) {
				res, err := f(ctx, &d, cp)
				r.result(res)
				return nil, err
			})
		})
	}}
}

// operations measures one operation at a time: what a change of the code changes is seen here
// first.
func operations(l *Lab) (list []Variant, _ error) {
	for _, layout := range l.layouts() {
		list = append(list,
			l.operation("Commit", layout, func(ctx context.Context, d *bench.Dataset, cp *bench.Copy) (bench.Result, error) {
				return l.commits(ctx, d, cp, bench.CommitConfig{Blocks: bench.Blocks(d.Profile, d.Gen.Next(bench.Endless))})
			}),
			l.operation("Update", layout, func(ctx context.Context, d *bench.Dataset, cp *bench.Copy) (bench.Result, error) {
				return l.commits(ctx, d, cp, bench.CommitConfig{Blocks: bench.Updates(d.Profile, d.Gen, l.fresh()), Settle: true})
			}),
			l.operation("Get", layout, func(ctx context.Context, d *bench.Dataset, cp *bench.Copy) (bench.Result, error) {
				return bench.Get(ctx, cp.Entities, bench.GetConfig{Profile: d.Profile, Of: d.Gen, Config: pace.Config{Duration: l.Phase, Seed: l.fresh()}})
			}))
	}
	return list, nil
}

// commits commits what follows a data set, for a phase where no number is given.
func (l *Lab) commits(ctx context.Context, d *bench.Dataset, cp *bench.Copy, cfg bench.CommitConfig) (res bench.Result, err error) {
	if cfg.Expect, err = d.Expectation(cp.Ready); err != nil {
		return res, err
	}
	if cfg.N == 0 {
		cfg.Duration = l.Phase
	}
	return bench.Commit(ctx, cp.Entities, cfg)
}

// queries measures each query of the fixed set.
func queries(l *Lab) (list []Variant, _ error) {
	for _, layout := range l.layouts() {
		for i, q := range bench.Queries() {
			list = append(list, l.operation("Query", layout, func(ctx context.Context, d *bench.Dataset, cp *bench.Copy) (bench.Result, error) {
				answers, err := bench.Answers(d.Profile, d.Gen, bench.Queries()[i:i+1])
				if err != nil {
					return bench.Result{}, err
				}
				return bench.Query(ctx, cp.Entities, bench.QueryConfig{Query: q, Answer: answers[0], Config: pace.Config{Duration: l.Phase}})
			}, "query", q.Name))
		}
	}
	return list, nil
}
