package experiment

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/bench/serve"
	"github.com/varvedb/varve/store"
)

// leastServed is how many entities are loaded at least, for each client.
const leastServed = 20

// measureService measures the entity service as its clients see it.
func measureService(l *Lab) (list []variant, _ error) {
	n := min(l.scaled(serve.Entities/serve.Clients, leastServed)*serve.Clients, serve.Entities)
	for _, layout := range l.layouts() {
		for _, protocol := range serve.Protocols {
			for _, w := range serve.Workloads {
				c := l.on(layout, itoa(serve.PayloadBytes)+"B", "protocol", protocol, "op", w.Name, "clients", itoa(w.Clients))
				list = append(list, variant{"Service", c, func(ctx context.Context, r *result.Record) error {
					return l.withStore(ctx, "", layout, l.storeOptions(), r, func(db *database, _ *store.Entities) error {
						db.probed(r)
						res, err := w.Run(ctx, db.DB, protocol, n, bench.For(l.Phase/2)) // there are many
						add(r, w.Name, res)
						return err
					})
				}})
			}
		}
	}
	return list, nil
}

// Running is a service that runs elsewhere, and the load that is put on it.
type Running struct {
	Connect  map[string]func() (serve.Client, error) // by protocol
	Clients  int
	Each     int // requests of a client, of each kind
	Entities int // that are written first and stay
}

// RunningService is not in the catalogue, since it needs a service.
func RunningService(s Running) Experiment {
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
func (s Running) variants(l *Lab) (list []variant, _ error) {
	for _, protocol := range slices.Sorted(maps.Keys(s.Connect)) {
		var requests *serve.Requests
		var failed error // of loading: there is nothing to measure
		ready := func(ctx context.Context) error {
			if failed != nil {
				return fmt.Errorf("%w: %w", errSkip, failed)
			}
			if requests == nil {
				requests, failed = s.load(ctx, l, protocol)
			}
			return failed
		}
		for _, kind := range running {
			for _, clients := range []int{1, s.Clients} {
				c := l.config("protocol", protocol, "op", kind.op, "clients", itoa(clients))
				list = append(list, variant{"RunningService", c, func(ctx context.Context, r *result.Record) error {
					if err := ready(ctx); err != nil {
						return err
					}
					res := bench.NewResult()
					err := res.Clients(ctx, clients, s.Each, func(ctx context.Context, i int) error { return kind.request(requests, ctx, i) })
					add(r, kind.op, res)
					return err
				}})
			}
		}
	}
	return list, nil
}

// load writes the entities, so many that no two clients share one.
func (s Running) load(ctx context.Context, l *Lab, protocol string) (*serve.Requests, error) {
	client, err := s.Connect[protocol]()
	if err != nil {
		return nil, err
	}
	l.closing = append(l.closing, client.Close)
	entities := s.Entities / s.Clients * s.Clients
	return serve.NewRequests(client, entities), serve.Load(ctx, client, entities)
}
