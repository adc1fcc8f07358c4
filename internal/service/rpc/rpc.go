// Package rpc serves a service over gRPC, as defined by the files in
// api/varve/v1.
package rpc

import (
	"cmp"
	"context"
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

// Server is the gRPC interface of a service: a gRPC server, and its health
// service, which reports "not serving" during shutdown.
type Server struct {
	*grpc.Server
	Health *health.Server
}

// New returns the gRPC interface of a service, which the caller binds to a
// listener. Further options may be credentials.
func New(s *service.Service, with service.Serving, more ...grpc.ServerOption) *Server {
	with = with.WithDefaults()
	in := newAdmission(with, s)
	options := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(s.MaxMessage()), grpc.MaxConcurrentStreams(maxStreams), grpc.MaxHeaderListSize(service.MaxHeader),
		grpc.StreamInterceptor(in.stream), grpc.InTapHandle(arrive), grpc.ForceServerCodecV2(codec{}),
		// Reusing goroutines for handlers is cheaper than starting one for each
		// call.
		grpc.NumStreamWorkers(workers),
		// Fixed windows, because to measure one gRPC would add a ping to every
		// exchange of small messages. For a message that is being received,
		// gRPC widens the window.
		grpc.InitialWindowSize(window), grpc.InitialConnWindowSize(64 * window),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: with.Timeouts.Idle, Time: time.Minute, Timeout: 20 * time.Second}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 10 * time.Second, PermitWithoutStream: true}),
	}
	if t := with.Timeouts.Header; t > 0 {
		options = append(options, grpc.ConnectionTimeout(t))
	}
	server := &Server{Server: grpc.NewServer(append(options, more...)...), Health: health.NewServer()}
	server.RegisterService(in.counted(varvev1.EntityService_ServiceDesc), &entities{service: s})
	server.RegisterService(in.counted(varvev1.EventService_ServiceDesc), &events{service: s, ending: with.Ending})
	server.RegisterService(in.asStreams(healthpb.Health_ServiceDesc), server.Health)
	reflection.Register(server) // of the public services in api/varve/v1
	return server
}

// maxStreams bounds the concurrent requests of one connection.
const maxStreams = 256

// window is how many bytes of a request are received before it is admitted.
const window = 64 << 10

// workers is the number of goroutines that wait for requests.
const workers = 32

// The names of accesslog's headers in metadata.
var (
	requestID   = strings.ToLower(accesslog.Header)
	traceparent = strings.ToLower(accesslog.TraceHeader)
)

// first returns the value of a metadata key that occurs once.
func first(ctx context.Context, name string) string {
	if list := metadata.ValueFromIncomingContext(ctx, name); len(list) == 1 {
		return list[0]
	}
	return ""
}

// peerAddress returns the address of the client.
func peerAddress(ctx context.Context) string {
	if p, ok := peer.FromContext(ctx); ok {
		return p.Addr.String()
	}
	return ""
}

// statusOf converts an error into a status, unless it is one already.
func statusOf(err error) *status.Status {
	if st, ok := status.FromError(err); ok {
		return st
	}
	class := service.Classify(err)
	return detailed(status.New(class.Code, cmp.Or(class.Detail(err), class.Title)), class, err)
}
