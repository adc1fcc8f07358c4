package lab

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/enrolment"
	"github.com/varvedb/varve/bench/pace"
	"github.com/varvedb/varve/bench/serve"
	"github.com/varvedb/varve/store"
)

// leastServed is how many entities are loaded at least, for each client.
const leastServed = 20

// measureService measures the entity service as its clients see it.
func measureService(l *Lab) (list []Variant, _ error) {
	n := min(l.scaled(serve.Entities/serve.Clients, leastServed)*serve.Clients, serve.Entities)
	for _, layout := range l.layouts() {
		for _, protocol := range serve.Protocols {
			for _, w := range serve.Workloads {
				c := l.on(layout, itoa(serve.PayloadBytes)+"B", "protocol", protocol, "op", w.Name, "clients", itoa(w.Clients))
				list = append(list, Variant{"Service", c, func(ctx context.Context, r *Record) error {
					return l.withStore(ctx, "", layout, l.storeOptions(), r, func(db *store.DB, _ *store.Entities) error {
						res, err := w.Run(ctx, db, protocol, n, pace.Config{Duration: l.Phase / 2}) // there are many
						r.result(res)
						return err
					})
				}})
			}
		}
	}
	sizes := l.enrolments()
	return append(list, l.servedEvents(sizes[len(sizes)-1])...), nil
}

// servedEvents measures appends and decisions of clients on one connection to a service.
func (l *Lab) servedEvents(data enrolment.Data) (list []Variant) {
	for _, protocol := range serve.EventProtocols {
		for _, w := range serve.EventWorkloads {
			c := l.on(enrolment.Layout, data.Name, "protocol", protocol, "op", w.Name, "clients", itoa(w.Clients))
			list = append(list, Variant{"ServiceEvents", c, func(ctx context.Context, r *Record) error {
				return l.withDataset(ctx, data.Dataset(l.Engine), l.storeOptions(), r, func(cp *bench.Copy) error {
					return l.timed(ctx, cp, r, func(ctx context.Context) (bench.Result, error) {
						return w.Serve(ctx, cp.DB, protocol, pace.Config{Duration: l.Phase / 2})
					})
				})
			}})
		}
	}
	return list
}

// Running is a service that runs elsewhere, and the load that is put on it.
type Running struct {
	Connect  map[string]func() (serve.Client, error) // by protocol
	Clients  int
	Each     int // requests of a client, of each kind
	Entities int // that are written first and stay

	closing []func() error
}

// Close closes the connections.
func (s *Running) Close() (err error) {
	for _, f := range s.closing {
		err = errors.Join(err, f())
	}
	return err
}

// RunningService is not in the catalogue, since it needs a service.
func RunningService(s *Running) Experiment {
	return Experiment{
		ID: "H2", Title: "Running service", Ordered: true, plan: s.variants,
		Question: "What do clients of this service get?",
	}
}

// running are the kinds of requests that a running service gets.
var running = []struct {
	op      string
	request func(*serve.Requests, context.Context, int) error
}{{"put", (*serve.Requests).Update}, {"get", (*serve.Requests).Get}, {"put-get", (*serve.Requests).PutGet}}

// variants are each kind of request by one client and by all of them. The first that is
// missing loads the entities.
func (s *Running) variants(l *Lab) (list []Variant, _ error) {
	for _, protocol := range slices.Sorted(maps.Keys(s.Connect)) {
		var requests *serve.Requests
		var failed error // of loading: there is nothing to measure
		ready := func(ctx context.Context) error {
			if failed != nil {
				return fmt.Errorf("%w: %w", ErrSkip, failed)
			}
			if requests == nil {
				requests, failed = s.load(ctx, protocol)
			}
			return failed
		}
		for _, kind := range running {
			for _, clients := range []int{1, s.Clients} {
				c := l.keys("protocol", protocol, "op", kind.op, "clients", itoa(clients))
				list = append(list, Variant{"RunningService", c, func(ctx context.Context, r *Record) error {
					if err := ready(ctx); err != nil {
						return err
					}
					out, err := requests.Loop(ctx, pace.Config{Workers: clients, N: int64(clients * s.Each)}, kind.request)
					r.result(bench.Result{Outcome: out})
					return err
				}})
			}
		}
	}
	return list, nil
}

// load writes the entities, so many that no two clients share one.
func (s *Running) load(ctx context.Context, protocol string) (*serve.Requests, error) {
	client, err := s.Connect[protocol]()
	if err != nil {
		return nil, err
	}
	s.closing = append(s.closing, client.Close)
	entities := s.Entities / s.Clients * s.Clients
	return serve.NewRequests(client, entities), serve.Load(ctx, client, entities)
}
