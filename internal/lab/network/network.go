// Package network has the experiments whose clients are at the other end of a connection. It brings
// the service, the node and their protocols with it: a program that runs them imports it.
package network

import (
	"context"
	"strconv"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/enrolment"
	"github.com/varvedb/varve/bench/mix"
	"github.com/varvedb/varve/bench/node"
	"github.com/varvedb/varve/bench/pace"
	"github.com/varvedb/varve/bench/serve"
	"github.com/varvedb/varve/internal/lab"
)

// nodeClients is how many clients a node has.
const nodeClients = 32

// nodeLoad is the calls of a node's clients, in a closed loop where there is no
// rate.
type nodeLoad struct {
	calls string
	rate  float64
}

// nodeLoads are measured over each protocol. The last is about the latencies.
var nodeLoads = []nodeLoad{{calls: mix.ByKey}, {calls: mix.A}, {calls: node.SDK}, {calls: node.SDK, rate: 300}}

// measureNode measures an Arkiv node as its clients see it, while it follows a chain.
func measureNode(l *lab.Lab) (list []lab.Variant, _ error) {
	for _, layout := range l.LayoutsOr() {
		for _, protocol := range node.Protocols {
			for _, rows := range l.RatesOr(lab.ArkivRowRate) {
				for _, load := range nodeLoads {
					loop := "closed"
					if load.rate > 0 {
						loop = "open-" + lab.Ftoa(load.rate)
					}
					c := l.OnBase(layout, l.Scale, "protocol", protocol, "op", load.calls, "clients", strconv.Itoa(nodeClients), "rate", lab.Ftoa(rows), "loop", loop)
					list = append(list, lab.Variant{Name: "Node", Keys: c, Cost: lab.Cost{Phases: 1}, Run: func(ctx context.Context, r *lab.Record) error {
						cfg := node.Config{Protocol: protocol, Calls: load.calls, Rows: rows, Config: l.Loop(nodeClients, load.rate, 0)}
						return l.WithBase(ctx, layout, l.Scale, l.StoreOptions(), r, func(d *bench.Dataset, cp *bench.Copy) error {
							return runNode(ctx, l, d, cp, cfg, r)
						})
					}})
				}
			}
		}
	}
	return list, nil
}

func runNode(ctx context.Context, l *lab.Lab, d *bench.Dataset, cp *bench.Copy, cfg node.Config, r *lab.Record) error {
	oracle, err := l.Oracle(d) // separate, because it follows the chain
	if err != nil {
		return err
	}
	if !cp.Entities.Temporal() {
		r.Note(mix.HeadOnlyNote)
		r.Note("nor are there events, and pages are not read to their ends")
	}
	return l.Timed(ctx, cp, r, func(ctx context.Context) (*pace.Outcome, error) {
		out, err := node.Run(ctx, cp.Entities, oracle, d.Rest(), cfg)
		if out == nil || out.Outcome == nil {
			return nil, err
		}
		r.Outcome(out.Outcome)
		if cfg.Rows > 0 {
			r.Put(out.Followed, "rows/s")
			r.Put(lab.Milliseconds(out.Follow.Quantile(99)), "follow-p99-ms")
			r.Kind("follow", out.Follow)
		}
		if out.Short {
			r.Note("the chain ended before the phase: what follows the loaded part was too little for it")
		}
		return out.Outcome, err
	})
}

func init() {
	lab.Register("H1", measureService)
	lab.Register("H3", measureNode)
	lab.Register("J1", lab.Operated("FirstSync", "source", 0, 1, map[string]lab.Operation{"tar": (*lab.Lab).FromTar, "chain": func(l *lab.Lab, ctx context.Context, layout string, r *lab.Record) error {
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

// leastServed is how many entities are loaded at least, for each client.
const leastServed = 20

// measureService measures the entity service as its clients see it.
func measureService(l *lab.Lab) (list []lab.Variant, _ error) {
	n := min(l.Scaled(serve.Entities/serve.Clients, leastServed)*serve.Clients, serve.Entities)
	for _, layout := range l.LayoutsOr() {
		for _, protocol := range serve.Protocols {
			for _, w := range serve.Workloads {
				c := l.On(layout, strconv.Itoa(serve.PayloadBytes)+"B", "protocol", protocol, "op", w.Name, "clients", strconv.Itoa(w.Clients))
				list = append(list, lab.Variant{Name: "Service", Keys: c, Cost: lab.Cost{Phases: .5}, Run: func(ctx context.Context, r *lab.Record) error {
					return l.WithNew(ctx, "", layout, l.StoreOptions(), r, func(cp *bench.Copy) error {
						res, err := w.Run(ctx, cp.DB, protocol, n, pace.Config{Duration: l.Phase / 2}) // there are many
						r.Result(res)
						return err
					})
				}})
			}
		}
	}
	sizes := l.Enrolments()
	return append(list, servedEvents(l, sizes[len(sizes)-1])...), nil
}

// servedEvents measures appends and decisions of clients on one connection to a service.
func servedEvents(l *lab.Lab, data enrolment.Data) (list []lab.Variant) {
	for _, protocol := range serve.EventProtocols {
		for _, w := range serve.EventWorkloads {
			c := l.On(enrolment.Layout, data.Name, "protocol", protocol, "op", w.Name, "clients", strconv.Itoa(w.Clients))
			list = append(list, l.TimedOn("ServiceEvents", c, lab.Cost{Phases: .5}, data.Dataset(l.Engine), func(ctx context.Context, cp *bench.Copy) (bench.Result, error) {
				return w.Serve(ctx, cp.DB, protocol, pace.Config{Duration: l.Phase / 2})
			}))
		}
	}
	return list
}
