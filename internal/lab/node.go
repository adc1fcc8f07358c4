package lab

import (
	"context"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/mix"
	"github.com/varvedb/varve/bench/node"
	"github.com/varvedb/varve/bench/pace"
)

// nodeClients is how many clients a node has.
const nodeClients = 32

// nodeLoad is what the clients of a node call, in a closed loop where there is no rate.
type nodeLoad struct {
	calls string
	rate  float64
}

// nodeLoads are what is measured over each protocol. The last is about the latencies.
var nodeLoads = []nodeLoad{{calls: mix.ByKey}, {calls: mix.A}, {calls: node.SDK}, {calls: node.SDK, rate: 300}}

// measureNode measures an Arkiv node as its clients see it, while it follows a chain.
func measureNode(l *Lab) (list []Variant, _ error) {
	for _, layout := range l.layouts() {
		for _, protocol := range node.Protocols {
			for _, rows := range l.rates(seedRowRate) {
				for _, load := range nodeLoads {
					loop := "closed"
					if load.rate > 0 {
						loop = "open-" + ftoa(load.rate)
					}
					c := l.onBase(layout, "protocol", protocol, "op", load.calls, "clients", itoa(nodeClients), "rate", ftoa(rows), "loop", loop)
					list = append(list, Variant{"Node", c, func(ctx context.Context, r *Record) error {
						cfg := node.Config{Protocol: protocol, Calls: load.calls, Rows: rows, Config: l.loop(nodeClients, load.rate, 0)}
						return l.withBase(ctx, layout, l.Scale, l.storeOptions(), r, func(d *bench.Dataset, cp *bench.Copy) error {
							return l.node(ctx, d, cp, cfg, r)
						})
					}})
				}
			}
		}
	}
	return list, nil
}

func (l *Lab) node(ctx context.Context, d *bench.Dataset, cp *bench.Copy, cfg node.Config, r *Record) error {
	oracle, err := l.oracle(d) // of its own: it follows the chain
	if err != nil {
		return err
	}
	if !cp.Entities.Temporal() {
		r.note(mix.HeadOnlyNote)
		r.note("nor are there events, and pages are not read to their ends")
	}
	return l.phase(ctx, cp, r, func(ctx context.Context) (*pace.Outcome, error) {
		out, err := node.Run(ctx, cp.Entities, oracle, d.Rest(), cfg)
		if out == nil || out.Outcome == nil {
			return nil, err
		}
		r.outcome(out.Outcome)
		if cfg.Rows > 0 {
			r.put(out.Followed, "rows/s")
			r.put(float64(out.Behind), "behind-blocks")
			r.put(milliseconds(out.Follow.Quantile(99)), "follow-p99-ms")
			r.kind("follow", out.Follow)
		}
		if out.Short {
			r.note("the chain ended before the phase: what follows the loaded part was too little for it")
		}
		return out.Outcome, err
	})
}
