// Package rpc serves a service over gRPC, as the files in api/varve/v1 define it.
package rpc

import (
	"cmp"
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

// Options of the interface. All but the gate may be left out.
type Options struct {
	// Gate decides which requests come in.
	Gate *service.Gate

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
func New(s *service.Service, o Options) *Server {
	o.Ending = cmp.Or(o.Ending, context.Background())
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	in := newAdmission(o, s)
	options := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(s.MaxMessage()), grpc.MaxConcurrentStreams(maxStreams), grpc.MaxHeaderListSize(service.MaxHeader),
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
	server.RegisterService(in.counted(varvev1.EntityService_ServiceDesc), &entities{service: s})
	server.RegisterService(in.counted(varvev1.EventService_ServiceDesc), &events{service: s, ending: o.Ending})
	server.RegisterService(in.admitted(healthpb.Health_ServiceDesc), server.Health)
	reflection.Register(server) // of what is public in api/varve/v1
	return server
}

// maxStreams bounds the requests of one connection at a time.
const maxStreams = 256

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
	return detailed(status.New(class.Code, cmp.Or(class.Detail(err), class.Title)), class, err)
}
