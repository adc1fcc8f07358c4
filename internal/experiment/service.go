package experiment

import (
	"context"
	"maps"
	"slices"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/bench/serve"
	"github.com/varvedb/varve/store"
)

// leastServed is how many entities are loaded at least, for each client.
const leastServed = 20

// serviceLoad is a workload over a protocol.
type serviceLoad struct {
	protocol string
	serve.Workload
}

// measureService measures the entity service as its clients see it.
func measureService(l *Lab) ([]variant, error) {
	n := min(l.scaled(serve.Entities/serve.Clients, leastServed)*serve.Clients, serve.Entities)
	var loads []serviceLoad
	for _, protocol := range serve.Protocols {
		for _, w := range serve.Workloads {
			loads = append(loads, serviceLoad{protocol, w})
		}
	}
	return variants[serviceLoad]{
		name: "Service", values: loads,
		config: func(layout string, v serviceLoad) result.Config {
			return l.on(layout, itoa(serve.PayloadBytes)+"B", "protocol", v.protocol, "op", v.Name, "clients", itoa(v.Clients))
		},
		run: func(ctx context.Context, layout string, v serviceLoad, r *result.Record) error {
			return l.withStore(ctx, "", layout, l.storeOptions(), r, func(db *database, _ *store.Entities) error {
				if err := db.probe(r); err != nil {
					return err
				}
				res, err := v.Run(ctx, db.DB, v.protocol, n, bench.For(l.Phase/2)) // there are many
				add(r, v.Name, res)
				return err
			})
		},
	}.of(l), nil
}

// Running is a service that runs elsewhere, and the load that is put on it.
type Running struct {
	Connect  map[string]func() (serve.Client, error) // by protocol
	Clients  int
	Each     int // requests of a client, of each kind
	Entities int // that are written first and stay
}

// RunningService is not in the catalogue, since it needs a service.
func RunningService(ctx context.Context, s Running) Experiment {
	return Experiment{
		ID: "H2", Title: "Running service", Ordered: true,
		Question: "What do clients of this service get?",
		plan: func(l *Lab) (list []variant, err error) {
			for _, protocol := range slices.Sorted(maps.Keys(s.Connect)) {
				of, err := s.variants(ctx, l, protocol)
				if err != nil {
					return nil, err
				}
				list = append(list, of...)
			}
			return list, nil
		},
	}
}

// variants are each kind of request by one client and by all of them.
func (s Running) variants(ctx context.Context, l *Lab, protocol string) (list []variant, err error) {
	client, err := s.Connect[protocol]()
	if err != nil {
		return nil, err
	}
	l.closing = append(l.closing, client.Close)
	entities := s.Entities / s.Clients * s.Clients // so that no two clients share one
	if err := serve.Load(ctx, client, entities); err != nil {
		return nil, err
	}
	requests := serve.NewRequests(client, entities)
	kinds := []string{"put", "get", "put-get"}
	for i, request := range []func(context.Context, int) error{requests.Update, requests.Get, requests.PutGet} {
		for _, clients := range []int{1, s.Clients} {
			c := l.config("protocol", protocol, "op", kinds[i], "clients", itoa(clients))
			list = append(list, variant{"RunningService", c, func(ctx context.Context, r *result.Record) error {
				res := bench.NewResult()
				err := res.Clients(ctx, clients, s.Each, request)
				add(r, kinds[i], res)
				return err
			}})
		}
	}
	return list, nil
}
