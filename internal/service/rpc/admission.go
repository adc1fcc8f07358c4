package rpc

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	"github.com/varvedb/varve/internal/accesslog"
	"github.com/varvedb/varve/internal/quota"
	"github.com/varvedb/varve/internal/service"
)

// admission checks the gate for each request, before its message is received.
// It converts errors to statuses and counts.
type admission struct {
	with       service.Serving
	service    *service.Service
	operations map[string]*service.Operation // by full method name; read only

	// messages and public bound the memory of messages that are being received.
	// The length of a message is only known after it was received, so until
	// then it counts with the maximum length. Calls without a token have a
	// separate quota.
	messages, public *quota.Quota
}

// How many messages of maximum length may be received concurrently, and the
// grace for calls without a token, whose messages are short.
const (
	roomForMessages = 6
	roomForPublic   = 2
	publicGrace     = 100 * time.Millisecond
)

func newAdmission(with service.Serving, s *service.Service) *admission {
	in := &admission{with: with, service: s, operations: map[string]*service.Operation{}}
	longest := int64(s.MaxMessage())
	in.messages, in.public = quota.New(roomForMessages*longest), quota.New(roomForPublic*longest)
	in.public.Grace = publicGrace
	return in
}

// counted wraps a service whose operations are counted and need the token.
func (in *admission) counted(desc grpc.ServiceDesc) *grpc.ServiceDesc {
	count := func(name string) {
		in.operations["/"+desc.ServiceName+"/"+name] = in.service.Metrics().Operation("grpc", name, int(codes.OK))
	}
	for _, m := range desc.Methods {
		count(m.MethodName)
	}
	for _, m := range desc.Streams {
		count(m.StreamName)
	}
	return in.asStreams(desc)
}

// asStreams converts each unary method into a stream. gRPC does not report when
// the client has received a unary answer, and calls unary interceptors only
// after the message was received. So all calls pass through stream.
func (in *admission) asStreams(desc grpc.ServiceDesc) *grpc.ServiceDesc {
	desc.Streams = slices.Clone(desc.Streams)
	for _, m := range desc.Methods {
		desc.Streams = append(desc.Streams, grpc.StreamDesc{
			StreamName:    m.MethodName,
			ServerStreams: true, // else gRPC does not call the interceptors of streams
			Handler: func(srv any, stream grpc.ServerStream) error {
				return in.unary(srv, stream, m.Handler)
			},
		})
	}
	desc.Methods = nil
	return &desc
}

// unary receives the message of a unary method and sends its answer.
func (in *admission) unary(srv any, stream grpc.ServerStream, handle grpc.MethodHandler) error {
	ctx := stream.Context()
	s := ctx.Value(admittedKey{}).(*admittedStream)
	if t := in.with.Timeouts; t.Work > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, t.Read+t.Work)
		defer cancel()
	}
	reply, err := handle(srv, ctx, func(m any) error { return s.call.receive(ctx, m, s.ServerStream.RecvMsg) }, nil)
	if err != nil {
		return err
	}
	err = s.call.reply(s.ServerStream, reply)
	s.replied = err == nil
	return err
}

// stream admits a call.
func (in *admission) stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	c := in.call(stream.Context(), info.FullMethod)
	defer c.release()
	s := &admittedStream{ServerStream: stream, call: c}
	defer func() {
		if !s.replied { // else when the answer was taken
			c.hold.Release()
		}
	}()
	return c.serve(stream.Context(), stream.SetHeader, func(ctx context.Context) error {
		s.ctx = context.WithValue(ctx, admittedKey{}, s)
		return handle(srv, s)
	})
}

// admittedKey is the context key of a call's admittedStream.
type admittedKey struct{}

// admittedStream is a stream whose messages are received and sent through the
// call.
type admittedStream struct {
	grpc.ServerStream
	ctx     context.Context
	call    *call
	replied bool // with the one answer of its method
}

// Context implements grpc.ServerStream.
func (s *admittedStream) Context() context.Context { return s.ctx }

// RecvMsg implements grpc.ServerStream.
func (s *admittedStream) RecvMsg(m any) error {
	return s.call.receive(s.ctx, m, s.ServerStream.RecvMsg)
}

// SendMsg implements grpc.ServerStream.
func (s *admittedStream) SendMsg(m any) error { return s.call.send(s.ServerStream, m) }

// call is one request.
type call struct {
	in       *admission
	name     string
	counts   *service.Operation // nil: calls of health or reflection
	conn     *conn              // nil: not known
	cut      func(error)        // ends the call before its message was received
	received *quota.Hold        // the request
	decoded  *quota.Hold        // memory of the decoded message
	hold     *quota.Hold        // memory of the answer
}

type callKey struct{}

// arrival is in the context of a call from the time its header arrived.
type arrival struct {
	cut  context.CancelCauseFunc
	hold *quota.Hold // set before it is served
}

// holdOf returns the memory that a call holds for its answer.
func holdOf(ctx context.Context) *quota.Hold {
	if a, ok := ctx.Value(callKey{}).(*arrival); ok {
		return a.hold
	}
	return nil
}

// arrive makes a call cancellable by this package.
func arrive(ctx context.Context, _ *tap.Info) (context.Context, error) {
	ctx, cut := context.WithCancelCause(ctx)
	return context.WithValue(ctx, callKey{}, &arrival{cut: cut}), nil
}

func (in *admission) call(ctx context.Context, name string) *call {
	c := &call{in: in, name: name, counts: in.operations[name], conn: connOf(ctx), cut: func(error) {}}
	c.hold, c.decoded = in.with.Gate.Memory.Hold(c.conn.cut), in.with.Gate.Decoding.Hold(nil)
	// Turn compression of answers off, which clients that compress would
	// otherwise get, because gRPC does not report when compressed answers were
	// received.
	_ = grpc.SetSendCompressor(ctx, encoding.Identity) // which every client understands
	if a, ok := ctx.Value(callKey{}).(*arrival); ok {
		c.cut, a.hold = a.cut, c.hold
	}
	messages := in.messages
	if c.public() {
		messages = in.public
	}
	c.received = messages.Hold(func() {
		c.cut(fmt.Errorf("%w: others wait for the memory that its request is received into", service.ErrSlow))
	})
	return c
}

// release frees the request's memory.
func (c *call) release() {
	c.received.Release()
	c.decoded.Done()
}

// enter takes the place of a call.
func (c *call) enter(ctx context.Context) (leave func(), err error) {
	gate, host := c.in.with.Gate, first(ctx, ":authority")
	if c.public() {
		return func() {}, gate.Host(host)
	}
	if err := gate.Authorize(host, first(ctx, "authorization")); err != nil {
		return nil, err
	}
	return gate.Enter(c.counts == nil || c.name == "/varve.v1.EventService/Subscribe") // lasts as long as its client likes
}

// public reports whether a call needs neither token nor place.
func (c *call) public() bool {
	return c.name == "/grpc.health.v1.Health/Check" || c.name == "/grpc.health.v1.Health/List"
}

// serve serves a call if identify admits it.
func (c *call) serve(ctx context.Context, identify func(metadata.MD) error, serve func(context.Context) error) (err error) {
	in, code := c.in, codes.Internal // of a panic
	if c.counts != nil {
		begun := c.counts.Begin()
		defer func() { c.counts.End(begun, int(code)) }()
		if in.with.Access != nil {
			var line *accesslog.Request
			ctx, line = accesslog.Begin(ctx, in.with.Access, first(ctx, requestID), first(ctx, traceparent))
			_ = identify(metadata.Pairs(requestID, line.ID)) // a client that is gone needs none
			defer func() {
				line.End(ctx, slog.String("from", peerAddress(ctx)), slog.String("method", c.name), slog.String("status", code.String()))
			}()
		}
	}
	defer func() {
		// As in net/http, a panic in one request does not end the others.
		if cause := recover(); cause != nil {
			in.with.Log.Error("request", "method", c.name, "panic", cause, "stack", string(debug.Stack()))
			err = status.Error(codes.Internal, "internal error")
		}
	}()
	leave, err := c.enter(ctx)
	if err == nil {
		defer leave()
		err = serve(ctx)
	}
	if cause := context.Cause(ctx); err != nil && cause != nil && service.Classify(cause).Slug == "slow" {
		err = cause // that of a call that was cut off
	}
	if err == nil {
		code = codes.OK
		return nil
	}
	st := statusOf(err)
	class := service.Classify(err)
	if code = st.Code(); class.Status >= http.StatusInternalServerError && status.Code(err) == codes.Unknown {
		in.with.Report(class, err, "method", c.name, "code", code)
	}
	return st.Err()
}
