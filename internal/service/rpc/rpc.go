// Package rpc serves a service over gRPC, as the files in api/varve/v1 define it.
package rpc

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"

	varvev1 "github.com/varvedb/varve/api/varve/v1"
	"github.com/varvedb/varve/internal/accesslog"
	"github.com/varvedb/varve/internal/service"
)

// Options of the interface. The zero value is usable.
type Options struct {
	// Gate decides which requests come in; nil lets in all.
	Gate *service.Gate

	// MaxMessage bounds the bytes of a request; zero means what the service's largest
	// entity needs.
	MaxMessage int

	// MaxHeader bounds the bytes of a request's metadata; zero means 16 KiB.
	MaxHeader uint32

	// MaxStreams bounds the requests of one connection at a time; zero means 256.
	MaxStreams uint32

	// Receive bounds the time to receive a request, and Write the time in which a client
	// takes a message. Zero means no bound.
	Receive, Write time.Duration

	// Timeout bounds the rest of a request, but for streams. Zero means no bound.
	Timeout time.Duration

	// Connection bounds the handshake, and Idle the time without a request after
	// which a connection is closed. Zero means gRPC's own.
	Connection, Idle time.Duration

	// Ending is done when the server goes down, which ends subscriptions; nil means never.
	Ending context.Context

	// Log receives errors that clients are not told; nil drops them.
	Log *slog.Logger

	// Access gets a line for each request; nil: none.
	Access *slog.Logger

	// Server are further options, such as credentials.
	Server []grpc.ServerOption
}

// Server is the interface of one service: a gRPC server, and its health service,
// which is set to not serving while the server goes down.
type Server struct {
	*grpc.Server
	Health *health.Server
}

// New returns the interface of a service, which the caller binds to a listener.
func New(s *service.Service, o Options) (*Server, error) {
	if o.Gate == nil {
		var err error
		if o.Gate, err = service.NewGate(service.GateOptions{}); err != nil {
			return nil, err
		}
	}
	if o.MaxMessage == 0 {
		o.MaxMessage = s.MaxMessage()
	}
	if o.MaxHeader == 0 {
		o.MaxHeader = 16 << 10
	}
	if o.MaxStreams == 0 {
		o.MaxStreams = 256
	}
	if o.Ending == nil {
		o.Ending = context.Background()
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	in := newAdmission(o)
	options := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(o.MaxMessage), grpc.MaxConcurrentStreams(o.MaxStreams), grpc.MaxHeaderListSize(o.MaxHeader),
		grpc.StreamInterceptor(in.stream), grpc.InTapHandle(arrive), grpc.ForceServerCodecV2(codec{}),
		// A handler on a goroutine that is there already costs less than one on
		// its own.
		grpc.NumStreamWorkers(workers),
		// To find a window, gRPC would add a ping to every exchange of small messages. For a
		// message that is received, gRPC widens it.
		grpc.InitialWindowSize(window), grpc.InitialConnWindowSize(64 * window),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: o.Idle, Time: time.Minute, Timeout: 20 * time.Second}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 10 * time.Second, PermitWithoutStream: true}),
	}
	if o.Connection > 0 {
		options = append(options, grpc.ConnectionTimeout(o.Connection))
	}
	server := &Server{Server: grpc.NewServer(append(options, o.Server...)...), Health: health.NewServer()}
	server.RegisterService(in.operationsOf(varvev1.EntityService_ServiceDesc, s.Metrics()), &entities{service: s})
	server.RegisterService(in.operationsOf(varvev1.EventService_ServiceDesc, s.Metrics()), &events{service: s, ending: o.Ending.Done()})
	server.RegisterService(in.admitted(healthpb.Health_ServiceDesc), server.Health)
	reflection.Register(server) // of what is public in api/varve/v1
	return server, nil
}

// window is how many bytes of a request are taken before it is admitted.
const window = 64 << 10

// workers is the number of goroutines that wait for requests.
const workers = 32

// The names of accesslog's headers in metadata.
var (
	requestID   = strings.ToLower(accesslog.Header)
	traceparent = strings.ToLower(accesslog.TraceHeader)
)

// first returns the value of metadata that is given once.
func first(ctx context.Context, name string) string {
	if list := metadata.ValueFromIncomingContext(ctx, name); len(list) == 1 {
		return list[0]
	}
	return ""
}

// from returns the address of the client.
func from(ctx context.Context) string {
	if p, ok := peer.FromContext(ctx); ok {
		return p.Addr.String()
	}
	return ""
}

// statusOf makes a status of an error; one that is a status already stays.
func statusOf(err error) *status.Status {
	if st, ok := status.FromError(err); ok {
		return st
	}
	class := service.Classify(err)
	text := class.Title
	if detail := class.Detail(err); detail != "" {
		text = detail
	}
	return detailed(status.New(class.Code, text), class, err)
}
