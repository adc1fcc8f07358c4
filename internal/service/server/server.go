// Package server binds a service to addresses: listeners, TLS, timeouts, and an
// orderly shutdown. On any address but loopback it requires a token.
package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/http"
	"slices"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/varvedb/varve/internal/accesslog"
	"github.com/varvedb/varve/internal/service"
	"github.com/varvedb/varve/internal/service/rest"
	"github.com/varvedb/varve/internal/service/rpc"
)

// ErrUnsafe: an address that other machines can reach, and no token.
var ErrUnsafe = errors.New("an address that other machines reach needs a token (--token-file)")

// Options configure a server. The zero value listens on loopback, on ports that
// the system chooses, with default limits.
type Options struct {
	REST string // address; empty means 127.0.0.1:0, "off" means none
	GRPC string // address; empty means 127.0.0.1:0, "off" means none
	Site *Site  // nil: none
	UI   bool   // REST has a page that looks into the store

	// Token is the token that requests must send. It may be empty on loopback:
	// then requests must be for localhost, a loopback address, or one of Hosts.
	Token string
	Hosts []string
	TLS   *tls.Config // nil: plain

	Limits   service.GateOptions // over REST and gRPC together; the token and the hosts are those above
	Timeouts service.Timeouts    // a zero one is its default
	Log      *slog.Logger        // nil: no log
	Access   *slog.Logger        // a line for each request; nil: none

	// Traces exports spans of the requests if OpenTelemetry's environment
	// variables name an endpoint.
	Traces bool
}

// Server is a listening service.
type Server struct {
	opts    Options
	service *service.Service
	ending  context.Context // done when it drains
	end     context.CancelFunc
	gate    *service.Gate
	traces  *sdk.TracerProvider // nil: none
	spans   *semaphore.Weighted // counts running HTTP requests, because flush waits for their spans

	endpoints []*endpoint
}

// endpoint is one address with its server.
type endpoint struct {
	name  string // for errors
	on    net.Listener
	serve func(net.Listener) error    // until it is drained or stopped
	drain func(context.Context) error // waits for requests under way
	stop  func() error                // cuts them off
}

// Listen binds a service, which may be nil if REST and GRPC are off. It fails
// with ErrUnsafe before it opens a port. The caller either runs the server,
// which closes its ports at the end, or closes it.
func Listen(ctx context.Context, s *service.Service, o Options) (_ *Server, err error) {
	o.Timeouts = o.Timeouts.WithDefaults()
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	srv := &Server{opts: o, service: s, spans: semaphore.NewWeighted(math.MaxInt64)}
	srv.ending, srv.end = context.WithCancel(context.WithoutCancel(ctx))
	defer func() {
		if err != nil {
			err = errors.Join(err, srv.Close())
		}
	}()
	if o.Traces {
		if srv.traces, err = newTraces(ctx, o.Log); err != nil {
			return nil, err
		}
	}
	o.Limits.Token, o.Limits.Local, o.Limits.Hosts = o.Token, o.Token == "", o.Hosts
	if srv.gate, err = service.NewGate(o.Limits); err != nil {
		return nil, err
	}
	if err := srv.listen(ctx); err != nil {
		return nil, err
	}
	if o.Token != "" && o.TLS == nil && !srv.private() {
		o.Log.Warn("the token and all data are sent unencrypted: give a certificate (--tls-cert), or put a proxy with TLS in front")
	}
	return srv, nil
}

// listen opens the ports and sets up their servers.
func (s *Server) listen(ctx context.Context) error {
	add := func(name, address, token string, serve func(*endpoint)) error {
		if address == "off" {
			return nil
		}
		on, err := listen(ctx, address, token)
		if err != nil {
			return fmt.Errorf("listen for %s: %w; choose another address", name, err)
		}
		e := &endpoint{name: name, on: on}
		serve(e)
		s.endpoints = append(s.endpoints, e)
		return nil
	}
	o := s.opts
	with := service.Serving{Gate: s.gate, Timeouts: o.Timeouts, Ending: s.ending, Log: o.Log, Access: o.Access}
	err := add("REST", o.REST, o.Token, func(e *endpoint) {
		s.serveHTTP(e, accesslog.Handler(rest.New(s.service, with, o.UI), o.Access))
	})
	if err == nil && o.Site != nil {
		token := o.Token
		if o.Site.Public {
			token = "none is needed"
		}
		err = add(o.Site.Name, o.Site.Address, token, func(e *endpoint) { s.serveHTTP(e, o.Site.handler(s.gate, o.Token, o.Access)) })
	}
	if err == nil {
		err = add("gRPC", o.GRPC, o.Token, func(e *endpoint) { s.serveGRPC(e, with) })
	}
	return err
}

// private reports whether only this machine can reach the server.
func (s *Server) private() bool {
	return !slices.ContainsFunc(s.endpoints, func(e *endpoint) bool { return !loopback(e.on.Addr()) })
}

// listen opens a port. It refuses if other machines can reach it and there is
// no token. A name is looked up only once, so that the checked address is the
// opened one.
func listen(ctx context.Context, address, token string) (net.Listener, error) {
	if address == "" {
		address = "127.0.0.1:0"
	}
	resolved, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, err
	}
	if token == "" && !loopback(resolved) {
		return nil, fmt.Errorf("%w: %s", ErrUnsafe, address)
	}
	return new(net.ListenConfig).Listen(ctx, "tcp", resolved.String())
}

func loopback(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// serveHTTP sets up the HTTP server of an address.
func (s *Server) serveHTTP(e *endpoint, handler http.Handler) {
	o := s.opts
	server := &http.Server{
		Handler: s.traced(handler), MaxHeaderBytes: service.MaxHeader,
		ReadHeaderTimeout: o.Timeouts.Header, ReadTimeout: o.Timeouts.Read,
		// The time limit starts with the request's header, and restarts when
		// there is something to write.
		WriteTimeout: o.Timeouts.Read + o.Timeouts.Work + o.Timeouts.Write, IdleTimeout: o.Timeouts.Idle,
		ErrorLog: slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug),
	}
	if o.TLS != nil {
		config := o.TLS.Clone()
		config.NextProtos = []string{"h2", "http/1.1"}
		e.on = tls.NewListener(e.on, config)
	}
	e.serve, e.drain, e.stop = server.Serve, server.Shutdown, func() error { return errors.Join(closed(e.on), server.Close()) }
}

// closed closes a listener that may already be closed.
func closed(on net.Listener) error {
	if err := on.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// serveGRPC sets up the gRPC server of an address.
func (s *Server) serveGRPC(e *endpoint, with service.Serving) {
	var more []grpc.ServerOption
	if s.opts.TLS != nil {
		more = append(more, grpc.Creds(credentials.NewTLS(s.opts.TLS.Clone())))
	}
	if s.traces != nil {
		more = append(more, s.tracedGRPC())
	}
	server := rpc.New(s.service, with, more...)
	e.serve = server.Serve
	e.drain = func(ctx context.Context) error {
		server.Health.Shutdown()
		stop := context.AfterFunc(ctx, server.Stop)
		server.GracefulStop() // its handlers have ended, too, also after Stop
		if stop() {
			return nil
		}
		return ctx.Err()
	}
	e.stop = func() error {
		server.Stop()
		return closed(e.on)
	}
}

// SetToken changes the token that later requests must send.
func (s *Server) SetToken(token string) error { return s.gate.SetToken(token) }

// REST returns the address of REST, or "" if it is not served.
func (s *Server) REST() string { return s.address("REST") }

// Site returns the address of Options.Site, which must be set.
func (s *Server) Site() string { return s.address(s.opts.Site.Name) }

// GRPC returns the address of gRPC, or "" if it is not served.
func (s *Server) GRPC() string { return s.address("gRPC") }

func (s *Server) address(name string) string {
	for _, e := range s.endpoints {
		if e.name == name {
			return e.on.Addr().String()
		}
	}
	return ""
}

// Run serves until ctx ends. Then it refuses new requests, waits for running
// ones up to Timeouts.Drain, and cuts off the rest. The service stays open: the
// caller closes it, which commits queued writes, and then the store.
func (s *Server) Run(ctx context.Context) error {
	defer s.flush() // after the last request
	group, ctx := errgroup.WithContext(ctx)
	for _, e := range s.endpoints {
		group.Go(func() error {
			if err := e.serve(e.on); err != nil && !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, grpc.ErrServerStopped) {
				return fmt.Errorf("serve %s: %w", e.name, err)
			}
			return nil
		})
	}
	group.Go(func() error {
		<-ctx.Done()
		return s.drain()
	})
	return group.Wait()
}

// drain shuts down all transports concurrently. It logs the requests that it
// cuts off and returns no error, because they have had their time.
func (s *Server) drain() error {
	s.end() // ends subscriptions, which would not end by themselves; the server is no longer ready
	ctx, cancel := context.WithTimeout(context.Background(), s.opts.Timeouts.Drain)
	defer cancel()
	var group errgroup.Group
	for _, e := range s.endpoints {
		group.Go(func() error {
			err := e.drain(ctx)
			if errors.Is(err, context.DeadlineExceeded) {
				s.opts.Log.Warn("requests were cut off", "of", e.name, "after", s.opts.Timeouts.Drain)
				return e.stop()
			}
			return err
		})
	}
	if s.opts.Site != nil {
		group.Go(s.opts.Site.close)
	}
	return group.Wait()
}

// Close cuts everything off at once. It is for a server that was not run.
func (s *Server) Close() (err error) {
	defer s.flush()
	s.end()
	if s.opts.Site != nil {
		err = s.opts.Site.close()
	}
	for _, e := range s.endpoints {
		err = errors.Join(err, e.stop())
	}
	return err
}
