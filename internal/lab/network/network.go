// Package network has the experiments whose clients use a network connection.
// It depends on the service, the node and their protocols; a program that runs
// these experiments imports it.
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

// nodeLoad is a mix of calls of a node's clients; without a rate they run in a
// closed loop.
type nodeLoad struct {
	calls string
	rate  float64
}

// nodeLoads are measured over each protocol. The last one is for latencies.
var nodeLoads = []nodeLoad{{calls: mix.ByKey}, {calls: mix.A}, {calls: node.SDK}, {calls: node.SDK, rate: 300}}

// measureNode measures an Arkiv node as its clients see it, while it follows a
// chain.
func measureNode(l *lab.Lab) (list []lab.Variant, _ error) {
	for _, layout := range l.LayoutsOr() {
		for _, protocol := range node.Protocols {
			for _, rows := range l.RatesOr(lab.ArkivRowRate) {
				for _, load := range nodeLoads {
					list = append(list, load.variant(l, layout, protocol, rows))
				}
			}
		}
	}
	return list, nil
}

func (load nodeLoad) variant(l *lab.Lab, layout, protocol string, rows float64) lab.Variant {
	loop := "closed"
	if load.rate > 0 {
		loop = "open-" + lab.Ftoa(load.rate)
	}
	c := l.OnBase(layout, l.Scale, "protocol", protocol, "op", load.calls, "clients", strconv.Itoa(nodeClients), "rate", lab.Ftoa(rows), "loop", loop)
	return lab.Variant{Name: "Node", Keys: c, Cost: lab.BaseCost(l.Scale, 1, 0), Run: func(t *lab.Trial, ctx context.Context) error {
		cfg := node.Config{Protocol: protocol, Calls: load.calls, Rows: rows, Config: t.Loop(nodeClients, load.rate, 0)}
		return t.WithBase(ctx, func() error { return runNode(ctx, t, cfg) })
	}}
}

func runNode(ctx context.Context, t *lab.Trial, cfg node.Config) error {
	oracle, err := t.Oracle(t.Data) // separate, because it follows the chain
	if err != nil {
		return err
	}
	if !t.Entities.Temporal() {
		t.Note(mix.HeadOnlyNote)
		t.Note("nor are there events, and pages are not read to their ends")
	}
	return t.Timed(ctx, nil, func() (*pace.Outcome, error) {
		out, err := node.Run(ctx, t.Entities, oracle, t.Data.Rest(), cfg)
		if out == nil || out.Outcome == nil {
			return nil, err
		}
		t.Outcome(out.Outcome)
		if cfg.Rows > 0 {
			t.Put(out.Followed, "rows/s")
			t.Put(lab.Milliseconds(out.Follow.Quantile(99)), "follow-p99-ms")
			t.Kind("follow", out.Follow)
		}
		if out.Short {
			t.Note("the chain ended before the phase: what follows the loaded part was too little for it")
		}
		return out.Outcome, err
	})
}

func init() {
	lab.Register("H1", measureService)
	lab.Register("H3", measureNode)
	lab.Register("J1", lab.Operated("FirstSync", "source", 0, 1, map[string]lab.Run{"tar": (*lab.Trial).FromTar, "chain": func(t *lab.Trial, ctx context.Context) error { return fromChain(ctx, t) }}))
}

// chainBytes bounds the payloads of a chain, which this process holds in
// memory.
const chainBytes = 64 << 20

// fromChain measures following a chain of the first blocks of the base profile.
func fromChain(ctx context.Context, t *lab.Trial) error {
	d, err := t.Base(t.Keys.Get("layout"), t.Scale, lab.ProductionBlock)
	if err != nil {
		return err
	}
	var c *node.Chain
	if err := t.Aside(func() (err error) { c, err = node.NewChain(ctx, d.Source.Blocks(), chainBytes); return err }); err != nil {
		return err
	}
	defer c.Close()
	t.Note("a chain of at most 64 MiB of payloads, which the process of the store serves")
	return t.WithLayout(ctx, func() error {
		rows, took, err := c.Follow(ctx, t.Entities)
		if err != nil {
			return err
		}
		return t.Synced(ctx, rows, took)
	})
}

// leastServed is the minimum number of loaded entities for each client.
const leastServed = 20

// measureService measures the entity service as its clients see it.
func measureService(l *lab.Lab) (list []lab.Variant, _ error) {
	n := min(l.Scaled(serve.Entities/serve.Clients, leastServed)*serve.Clients, serve.Entities)
	for _, layout := range l.LayoutsOr() {
		for _, protocol := range serve.Protocols {
			for _, w := range serve.Workloads {
				c := l.On(layout, strconv.Itoa(serve.PayloadBytes)+"B", "protocol", protocol, "op", w.Name, "clients", strconv.Itoa(w.Clients))
				list = append(list, lab.Variant{Name: "Service", Keys: c, Cost: lab.Cost{Phases: .5}, Run: func(t *lab.Trial, ctx context.Context) error {
					return t.WithLayout(ctx, func() error {
						res, err := w.Run(ctx, t.DB, protocol, n, pace.Config{Duration: t.Phase / 2}) // there are many
						t.Result(res)
						return err
					})
				}})
			}
		}
	}
	sizes := l.Enrolments()
	return append(list, servedEvents(l, sizes[len(sizes)-1])...), nil
}

// servedEvents measures appends and decisions of clients on one connection to a
// service.
func servedEvents(l *lab.Lab, data enrolment.Data) (list []lab.Variant) {
	for _, protocol := range serve.EventProtocols {
		for _, w := range serve.EventWorkloads {
			c := l.On(enrolment.Layout, data.Name, "protocol", protocol, "op", w.Name, "clients", strconv.Itoa(w.Clients))
			list = append(list, lab.Variant{Name: "ServiceEvents", Keys: c, Cost: lab.Cost{Phases: .5}, Run: lab.On(data.Dataset(l.Engine), func(t *lab.Trial) (lab.Workload, error) {
				return func(ctx context.Context) (bench.Result, error) {
					return w.Serve(ctx, t.DB, protocol, pace.Config{Duration: t.Phase / 2})
				}, nil
			})})
		}
	}
	return list
}
