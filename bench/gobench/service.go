package gobench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/varvedb/varve/bench/latency"
	"github.com/varvedb/varve/bench/serve"
	"github.com/varvedb/varve/internal/service"
	"github.com/varvedb/varve/internal/service/seal"
	"github.com/varvedb/varve/internal/service/server"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

// serviceEntities are loaded before a benchmark begins, a multiple of the clients; with
// the cache of serviceColdCache, hardly a get finds its own there.
const (
	serviceEntities  = 156 * serviceClients
	serviceColdCache = 64 << 10
	serviceClients   = 32
)

// serviceLoad is a benchmark of one protocol.
type serviceLoad struct {
	name        string
	cache       int64 // bytes; 0 is the default
	clients     int
	each        int // requests of a client in one round
	perRequest  int // puts and gets in a request
	chooseStart func(r *serve.Requests) func(ctx context.Context, i int) error
}

func serviceLoads() []serviceLoad {
	get := func(r *serve.Requests) func(context.Context, int) error { return r.Get }
	update := func(r *serve.Requests) func(context.Context, int) error { return r.Update }
	create := func(r *serve.Requests) func(context.Context, int) error { return r.Create }
	putGet := func(r *serve.Requests) func(context.Context, int) error { return r.PutGet }
	return []serviceLoad{
		{"put", 0, 1, 100, 1, update},
		{"get-warm", 0, 1, 100, 1, get},
		{"get-cold", serviceColdCache, 1, 100, 1, get},
		{"put-get", 0, 1, 100, 1, putGet},
		{"put", 0, serviceClients, 100, 1, update},
		{"get-warm", 0, serviceClients, 100, 1, get},
		{"get-cold", serviceColdCache, serviceClients, 100, 1, get},
		{"bulk-1000", 0, 1, 1000, 1, create},
	}
}

// protocols in the order in which they are measured.
var protocols = []string{"local", "rest", "grpc"}

// RunService measures every workload over every protocol. Payloads are sealed. An
// operation of the benchmark is a round: the requests of all clients.
func RunService(b *testing.B, s Suite) {
	layouts := s.Flags.layouts
	switch {
	case layouts != "":
	case testing.Short():
		layouts = "compact"
	default:
		layouts = "compact,arkiv"
	}
	durability, err := driver.ParseDurability(s.Flags.durability)
	must(b, err)
	for layout := range strings.SplitSeq(layouts, ",") {
		name := fmt.Sprintf("engine=%s/layout=%s/profile=%dB/durability=%s", s.Engine.Name, layout, serve.PayloadBytes, durability)
		b.Run(name, func(b *testing.B) {
			needs(b, s.Engine, durability)
			for _, protocol := range protocols {
				for _, w := range serviceLoads() {
					b.Run(fmt.Sprintf("protocol=%s/op=%s/clients=%d", protocol, w.name, w.clients), func(b *testing.B) {
						w.run(b, s.Engine.URL(b.TempDir()), layout, durability, protocol)
					})
				}
			}
		})
	}
}

func (w serviceLoad) run(b *testing.B, url, layout string, durability driver.Durability, protocol string) {
	h, err := openService(url, layout, durability, w.cache, protocol)
	must(b, err)
	b.Cleanup(func() { must(b, h.close()) })
	n := serviceEntities
	if testing.Short() {
		n = 20 * serviceClients
	}
	ctx := context.Background() // the benchmark's ends before its clean-up
	must(b, serve.Load(ctx, serve.Local(h.service), n))
	requests := serve.NewRequests(h.client, n)
	request := w.chooseStart(requests)
	_, err = serve.Clients(ctx, w.clients, 20, request) // connections, and the cache
	must(b, err)
	b.ReportAllocs()
	total, rounds := latency.NewRecorder(), 0
	var elapsed time.Duration
	for b.Loop() {
		begun := time.Now()
		from := rounds * w.clients * w.each
		r, err := serve.Clients(ctx, w.clients, w.each, func(ctx context.Context, i int) error { return request(ctx, from+i) })
		must(b, err)
		elapsed += time.Since(begun)
		total.Merge(r)
		rounds++
	}
	b.ReportMetric(float64(total.Count())/elapsed.Seconds(), "req/s")
	for _, q := range []float64{50, 95, 99} {
		b.ReportMetric(float64(total.Quantile(q))/1e6, fmt.Sprintf("p%g-ms", q))
	}
	b.ReportMetric(float64(total.Max())/1e6, "max-ms")
}

// harness is a service that listens, and a client of it.
type harness struct {
	db      *store.DB
	service *service.Service
	client  serve.Client
	stop    context.CancelFunc
	done    chan error
}

// openService makes a store and serves it.
func openService(url, layout string, durability driver.Durability, cache int64, protocol string) (h *harness, err error) {
	ctx := context.Background()
	keys, err := seal.New(bytes.Repeat([]byte{7}, seal.KeySize))
	if err != nil {
		return nil, err
	}
	h = &harness{stop: func() {}, done: make(chan error, 1)}
	defer func() {
		if err != nil {
			err = errors.Join(err, h.close())
		}
	}()
	if h.db, err = store.Open(ctx, url, &store.Options{Durability: durability}); err != nil {
		return h, err
	}
	if _, err = h.db.Entities(ctx, store.EntityOptions{Layout: layout}); err != nil {
		return h, err
	}
	if h.service, err = service.New(ctx, h.db, service.Options{Keys: keys, CacheBytes: cache}); err != nil {
		return h, err
	}
	if protocol == "local" {
		h.client = serve.Local(h.service)
		h.done <- nil
		return h, nil
	}
	srv, err := server.Listen(ctx, h.service, server.Options{})
	if err != nil {
		return h, err
	}
	running, stop := context.WithCancel(ctx)
	h.stop = stop
	go func() { h.done <- srv.Run(running) }()
	if protocol == "rest" {
		h.client = serve.REST(srv.REST(), "", serviceClients)
		return h, nil
	}
	h.client, err = serve.GRPC(srv.GRPC(), "")
	return h, err
}

func (h *harness) close() (err error) {
	if h.client != nil {
		err = h.client.Close()
	}
	h.stop()
	if h.client != nil {
		err = errors.Join(err, <-h.done)
	}
	if h.service != nil {
		h.service.Close()
	}
	if h.db != nil {
		err = errors.Join(err, h.db.Close())
	}
	return err
}
