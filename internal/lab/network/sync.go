package network

import (
	"context"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/node"
	"github.com/varvedb/varve/internal/lab"
)

func init() {
	lab.Register("H1", measureService)
	lab.Register("H3", measureNode)
	lab.Register("J1", lab.Operated("FirstSync", "source", map[string]lab.Operation{"tar": (*lab.Lab).FromTar, "chain": func(l *lab.Lab, ctx context.Context, layout string, r *lab.Record) error {
		return fromChain(ctx, l, layout, r)
	}}))
}

// chainBytes are the payloads of a chain at most, which this process holds.
const chainBytes = 64 << 20

// fromChain follows a chain with the first blocks of the base profile.
func fromChain(ctx context.Context, l *lab.Lab, layout string, r *lab.Record) error {
	d, err := l.Base(layout, l.Scale, lab.ProductionBlock)
	if err != nil {
		return err
	}
	var c *node.Chain
	if err := l.Aside(func() (err error) { c, err = node.NewChain(ctx, d.Source.Blocks(), chainBytes); return err }); err != nil {
		return err
	}
	defer c.Close()
	r.Note("a chain of at most 64 MiB of payloads, which the process of the store serves")
	return l.WithNew(ctx, "", layout, l.StoreOptions(), r, func(cp *bench.Copy) error {
		rows, took, err := c.Follow(ctx, cp.Entities)
		if err != nil {
			return err
		}
		return r.Synced(ctx, cp.DB, rows, took)
	})
}
