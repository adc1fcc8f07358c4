// Package rpc serves a service over gRPC, as the files in api/varve/v1 define it.
package rpc

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
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

	// MaxMessage bounds the bytes of a request; zero means the service's largest
	// payload and 1 MiB for the rest.
	MaxMessage int

	// MaxStreams bounds the requests of one connection at a time; zero means 256.
	MaxStreams uint32

	// Timeout bounds a request, and in a stream the sending of one message. Zero
	// means no bound.
	Timeout time.Duration

	// Connection bounds the handshake, and Idle the time without a request after
	// which a connection is closed. Zero means gRPC's own.
	Connection, Idle time.Duration

	// Ending is closed when the server goes down, which ends subscriptions; nil means
	// never.
	Ending <-chan struct{}

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
		o.MaxMessage = s.MaxPayload() + 1<<20
	}
	if o.MaxStreams == 0 {
		o.MaxStreams = 256
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	in := &interceptor{opts: o, operations: map[string]*service.Operation{}}
	for _, desc := range []grpc.ServiceDesc{varvev1.EntityService_ServiceDesc, varvev1.EventService_ServiceDesc} {
		for _, m := range desc.Methods {
			in.operations["/"+desc.ServiceName+"/"+m.MethodName] = s.Metrics().Operation("grpc", m.MethodName, int(codes.OK))
		}
		for _, m := range desc.Streams {
			in.operations["/"+desc.ServiceName+"/"+m.StreamName] = s.Metrics().Operation("grpc", m.StreamName, int(codes.OK))
		}
	}
	options := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(o.MaxMessage), grpc.MaxConcurrentStreams(o.MaxStreams),
		grpc.UnaryInterceptor(in.unary), grpc.StreamInterceptor(in.stream),
		// A handler on a goroutine that is there already costs less than one on
		// its own.
		grpc.NumStreamWorkers(workers),
		// To find a window, gRPC would add a ping to every exchange of small messages.
		grpc.InitialWindowSize(window), grpc.InitialConnWindowSize(4 * window),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: o.Idle, Time: time.Minute, Timeout: 20 * time.Second}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 10 * time.Second, PermitWithoutStream: true}),
	}
	if o.Connection > 0 {
		options = append(options, grpc.ConnectionTimeout(o.Connection))
	}
	server := &Server{Server: grpc.NewServer(append(options, o.Server...)...), Health: health.NewServer()}
	varvev1.RegisterEntityServiceServer(server, &entities{service: s, timeout: o.Timeout})
	varvev1.RegisterEventServiceServer(server, &events{service: s, timeout: o.Timeout, ending: o.Ending})
	healthpb.RegisterHealthServer(server, server.Health)
	reflection.Register(server) // of what is public in api/varve/v1
	return server, nil
}

// window is how many bytes of a request are taken before they are read.
const window = 1 << 20

// workers is the number of goroutines that wait for requests.
const workers = 32

// interceptor puts the gate before the operations, makes statuses of their errors
// and counts. Other services on the server, such as health, pass.
type interceptor struct {
	opts       Options
	operations map[string]*service.Operation // by full method name; read only
}

func (in *interceptor) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (resp any, err error) {
	counts := in.operations[info.FullMethod]
	if counts == nil {
		return handle(ctx, req)
	}
	if in.opts.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, in.opts.Timeout)
		defer cancel()
	}
	err = in.admitted(ctx, info.FullMethod, counts, func(header metadata.MD) error { return grpc.SetHeader(ctx, header) }, func(ctx context.Context) error {
		resp, err = handle(ctx, req)
		return err
	})
	return resp, err
}

func (in *interceptor) stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	counts := in.operations[info.FullMethod]
	if counts == nil {
		return handle(srv, stream)
	}
	return in.admitted(stream.Context(), info.FullMethod, counts, stream.SetHeader, func(ctx context.Context) error {
		if ctx != stream.Context() {
			stream = &logged{stream, ctx}
		}
		return handle(srv, stream)
	})
}

// logged is a stream whose context is that of its line of the log.
type logged struct {
	grpc.ServerStream
	ctx context.Context
}

// Context implements grpc.ServerStream.
func (s *logged) Context() context.Context { return s.ctx }

func (in *interceptor) admitted(ctx context.Context, method string, counts *service.Operation, identify func(metadata.MD) error, serve func(context.Context) error) (err error) {
	begun := counts.Begin()
	code := codes.Internal // of a panic
	if in.opts.Access != nil {
		var line *accesslog.Request
		ctx, line = accesslog.Begin(ctx, in.opts.Access, first(ctx, requestID), first(ctx, traceparent))
		_ = identify(metadata.Pairs(requestID, line.ID)) // a client that is gone needs none
		defer func() {
			line.End(ctx, slog.String("from", from(ctx)), slog.String("method", method), slog.String("status", code.String()))
		}()
	}
	defer func() {
		// As in net/http, what goes wrong in one request does not end the others.
		if cause := recover(); cause != nil {
			in.opts.Log.Error("request", "method", method, "panic", cause, "stack", string(debug.Stack()))
			err = status.Error(codes.Internal, "internal error")
		}
		counts.End(begun, int(code))
	}()
	err = in.enter(ctx)
	if err == nil {
		defer in.opts.Gate.Leave()
		err = serve(ctx)
	}
	if err == nil {
		code = codes.OK
		return nil
	}
	st := statusOf(err)
	if code = st.Code(); service.Classify(err).Status >= http.StatusInternalServerError {
		in.opts.Log.Error("request", "method", method, "code", code, "error", err)
	}
	return st.Err()
}

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

func (in *interceptor) enter(ctx context.Context) error {
	if err := in.opts.Gate.Authorize(first(ctx, "authorization")); err != nil {
		return err
	}
	return in.opts.Gate.Enter()
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

// send sends a message, or gives up on a client that does not take it: the end
// of the call ends the sending.
func send[M any](stream grpc.ServerStreamingServer[M], timeout time.Duration, m *M) error {
	if timeout <= 0 {
		return stream.Send(m)
	}
	sent := make(chan error, 1)
	go func() { sent <- stream.Send(m) }()
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case err := <-sent:
		return err
	case <-timer.C:
		return fmt.Errorf("%w: it took no message for %s", service.ErrSlow, timeout)
	}
}
