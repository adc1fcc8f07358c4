package network

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/enrolment"
	"github.com/varvedb/varve/bench/pace"
	"github.com/varvedb/varve/bench/serve"
	"github.com/varvedb/varve/internal/catalogue"
	"github.com/varvedb/varve/internal/lab"
)

// leastServed is how many entities are loaded at least, for each client.
const leastServed = 20

// measureService measures the entity service as its clients see it.
func measureService(l *lab.Lab) (list []lab.Variant, _ error) {
	n := min(l.Scaled(serve.Entities/serve.Clients, leastServed)*serve.Clients, serve.Entities)
	for _, layout := range l.LayoutsOr() {
		for _, protocol := range serve.Protocols {
			for _, w := range serve.Workloads {
				c := l.On(layout, strconv.Itoa(serve.PayloadBytes)+"B", "protocol", protocol, "op", w.Name, "clients", strconv.Itoa(w.Clients))
				list = append(list, lab.Variant{Name: "Service", Keys: c, Run: func(ctx context.Context, r *lab.Record) error {
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
			list = append(list, l.TimedOn("ServiceEvents", c, data.Dataset(l.Engine), func(ctx context.Context, cp *bench.Copy) (bench.Result, error) {
				return w.Serve(ctx, cp.DB, protocol, pace.Config{Duration: l.Phase / 2})
			}))
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
}

// RunningService is not in the catalogue, since it needs a service.
func RunningService(s *Running) lab.Experiment {
	return lab.Experiment{Entry: catalogue.Entry{ID: "H2", Title: "Running service"}, Plan: s.variants}
}

// running are the kinds of requests that a running service gets.
var running = []struct {
	op      string
	request func(*serve.Requests, context.Context, int) error
}{{"put", (*serve.Requests).Update}, {"get", (*serve.Requests).Get}, {"put-get", (*serve.Requests).PutGet}}

// variants are each kind of request by one client and by all of them.
func (s *Running) variants(l *lab.Lab) (list []lab.Variant, _ error) {
	for _, protocol := range slices.Sorted(maps.Keys(s.Connect)) {
		for _, kind := range running {
			for _, clients := range []int{1, s.Clients} {
				c := l.KeysOf("protocol", protocol, "op", kind.op, "clients", strconv.Itoa(clients))
				list = append(list, lab.Variant{Name: "RunningService", Keys: c, Run: func(ctx context.Context, r *lab.Record) error {
					return s.load(ctx, protocol, r, func(requests *serve.Requests) (*pace.Outcome, error) {
						return requests.Loop(ctx, pace.Config{Workers: clients, N: int64(clients * s.Each)}, kind.request)
					})
				}})
			}
		}
	}
	return list, nil
}

// load writes the entities, so many that no two clients share one, and measures f.
func (s *Running) load(ctx context.Context, protocol string, r *lab.Record, f func(*serve.Requests) (*pace.Outcome, error)) (err error) {
	client, err := s.Connect[protocol]()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	entities := s.Entities / s.Clients * s.Clients
	if err := serve.Load(ctx, client, entities); err != nil {
		return err
	}
	out, err := f(serve.NewRequests(client, entities))
	r.Result(bench.Result{Outcome: out})
	return err
}
