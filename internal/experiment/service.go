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

// services are section H: the entity service as its clients see it.
func services() []Experiment {
	return []Experiment{{
		ID: "H1", Title: "Entity service", Layouts: []string{"compact"},
		Question: "What does a client of the service get over REST and over gRPC, payloads sealed, and how much of that is the protocol?",
		Earlier:  "REST put ~1 ms, get ~1 ms warm and 3 to 5 cold, put and get ~2; gRPC put ~0.6, get ~0.3; 32 clients ~910 puts and ~970 gets a second; 1,000 new entities ~1 s",
		Run:      measureService,
	}}
}

// leastServed is how many entities are loaded at least, for each client.
const leastServed = 20

// serviceLoad is a workload over a protocol.
type serviceLoad struct {
	protocol string
	serve.Workload
}

func measureService(ctx context.Context, l *Lab) error {
	n := min(l.scaled(serve.Entities/serve.Clients, leastServed)*serve.Clients, serve.Entities)
	var loads []serviceLoad
	for _, protocol := range serve.Protocols {
		for _, w := range serve.Workloads {
			loads = append(loads, serviceLoad{protocol, w})
		}
	}
	return variants[serviceLoad]{
		name: "Service", layouts: l.layouts("compact"), values: loads,
		config: func(layout string, v serviceLoad) result.Config {
			return l.on(layout, itoa(serve.PayloadBytes)+"B", "protocol", v.protocol, "op", v.Name, "clients", itoa(v.Clients))
		},
		run: func(ctx context.Context, layout string, v serviceLoad, r *result.Record) error {
			return l.withStore(ctx, "", layout, l.storeOptions(), r, func(ctx context.Context, db *store.DB, _ *store.Entities) error {
				res, err := v.Run(ctx, db, v.protocol, n, bench.For(l.Phase/2)) // there are many
				add(r, v.Name, res)
				return err
			})
		},
	}.measure(ctx, l)
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
		ID: "H2", Title: "Running service", Ordered: true,
		Question: "What do clients of this service get?",
		Run: func(ctx context.Context, l *Lab) error {
			for _, protocol := range slices.Sorted(maps.Keys(s.Connect)) {
				if err := s.measure(ctx, l, protocol); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// measure measures each kind of request by one client and by all of them.
func (s Running) measure(ctx context.Context, l *Lab, protocol string) error {
	client, err := s.Connect[protocol]()
	if err != nil {
		return err
	}
	l.atEnd(client.Close)
	entities := s.Entities / s.Clients * s.Clients // so that no two clients share one
	if err := serve.Load(ctx, client, entities); err != nil {
		return err
	}
	requests := serve.NewRequests(client, entities)
	kinds := []string{"put", "get", "put-get"}
	for i, request := range []func(context.Context, int) error{requests.Update, requests.Get, requests.PutGet} {
		for _, clients := range []int{1, s.Clients} {
			c := l.config("protocol", protocol, "op", kinds[i], "clients", itoa(clients))
			err := l.measure(ctx, "RunningService", c, func(ctx context.Context, r *result.Record) error {
				res := bench.NewResult()
				err := res.Clients(ctx, clients, s.Each, request)
				add(r, kinds[i], res)
				return err
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}
