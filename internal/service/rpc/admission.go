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
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	"github.com/varvedb/varve/internal/accesslog"
	"github.com/varvedb/varve/internal/quota"
	"github.com/varvedb/varve/internal/service"
)

// admission puts the gate before requests, before their messages are received. It makes
// statuses of errors and counts.
type admission struct {
	opts       Options
	operations map[string]*service.Operation // by full method name; read only

	// A message is received whole, and how long it is shows only then: while it is received
	// it holds as much as the longest. Who shows no token has room of its own.
	messages, public *quota.Quota
}

// The room for messages that are being received, in the longest ones, and the grace of those
// without a token, which are short.
const (
	roomForMessages = 6
	roomForPublic   = 2
	publicGrace     = 100 * time.Millisecond
)

func newAdmission(o Options) *admission {
	in := &admission{opts: o, operations: map[string]*service.Operation{}}
	in.messages, in.public = quota.New(int64(roomForMessages*o.MaxMessage)), quota.New(int64(roomForPublic*o.MaxMessage))
	in.public.Grace = publicGrace
	return in
}

// operationsOf puts the admission before a service whose operations are counted.
func (in *admission) operationsOf(desc grpc.ServiceDesc, metrics *service.Metrics) *grpc.ServiceDesc {
	for _, m := range desc.Methods {
		in.operations["/"+desc.ServiceName+"/"+m.MethodName] = metrics.Operation("grpc", m.MethodName, int(codes.OK))
	}
	for _, m := range desc.Streams {
		in.operations["/"+desc.ServiceName+"/"+m.StreamName] = metrics.Operation("grpc", m.StreamName, int(codes.OK))
	}
	return in.admitted(desc)
}

// admitted puts the admission before the methods of a service. gRPC's own interceptors are
// called when the message was received.
func (in *admission) admitted(desc grpc.ServiceDesc) *grpc.ServiceDesc {
	desc.Methods = slices.Clone(desc.Methods)
	for i, m := range desc.Methods {
		name := "/" + desc.ServiceName + "/" + m.MethodName
		desc.Methods[i].Handler = func(srv any, ctx context.Context, receive func(any) error, more grpc.UnaryServerInterceptor) (any, error) {
			return in.unary(ctx, name, receive, func(ctx context.Context, receive func(any) error) (any, error) {
				return m.Handler(srv, ctx, receive, more)
			})
		}
	}
	return &desc
}

func (in *admission) unary(ctx context.Context, name string, receive func(any) error, handle func(context.Context, func(any) error) (any, error)) (any, error) {
	c := in.call(ctx, name)
	defer c.received.Release()
	var reply any
	err := c.serve(ctx, func(header metadata.MD) error { return grpc.SetHeader(ctx, header) }, func(ctx context.Context) (err error) {
		if in.opts.Timeout > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, in.opts.Receive+in.opts.Timeout)
			defer cancel()
		}
		reply, err = handle(ctx, func(m any) error { return c.receive(ctx, m, receive) })
		return err
	})
	if err != nil {
		c.hold.Release()
		return nil, err
	}
	return c.outgoing(reply), nil
}

func (in *admission) stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	c := in.call(stream.Context(), info.FullMethod)
	defer c.received.Release()
	defer c.hold.Release()
	return c.serve(stream.Context(), stream.SetHeader, func(ctx context.Context) error {
		return handle(srv, &admittedStream{stream, ctx, c})
	})
}

// admittedStream is a stream whose messages are received and sent as a call's are.
type admittedStream struct {
	grpc.ServerStream
	ctx  context.Context
	call *call
}

// Context implements grpc.ServerStream.
func (s *admittedStream) Context() context.Context { return s.ctx }

// RecvMsg implements grpc.ServerStream.
func (s *admittedStream) RecvMsg(m any) error {
	return s.call.receive(s.ctx, m, s.ServerStream.RecvMsg)
}

// SendMsg implements grpc.ServerStream.
func (s *admittedStream) SendMsg(m any) error { return s.call.send(m, s.ServerStream.SendMsg) }

// call is one request.
type call struct {
	in       *admission
	name     string
	counts   *service.Operation // nil: of a service that needs no token, such as health
	conn     *conn              // nil: not known
	cut      func(error)        // ends the call before its message is there
	received *quota.Hold        // the request
	hold     *quota.Hold        // what is sent
}

type callKey struct{}

// arrival is what the context of a call has from its head on.
type arrival struct {
	cut  context.CancelCauseFunc
	hold *quota.Hold // set before it is served
}

// holdOf returns what a call holds of what it sends.
func holdOf(ctx context.Context) *quota.Hold {
	if a, ok := ctx.Value(callKey{}).(*arrival); ok {
		return a.hold
	}
	return nil
}

// arrive makes a call one that can be ended from here.
func arrive(ctx context.Context, _ *tap.Info) (context.Context, error) {
	ctx, cut := context.WithCancelCause(ctx)
	return context.WithValue(ctx, callKey{}, &arrival{cut: cut}), nil
}

func (in *admission) call(ctx context.Context, name string) *call {
	c := &call{in: in, name: name, counts: in.operations[name], conn: connOf(ctx), cut: func(error) {}}
	c.hold = in.opts.Gate.Memory.Hold(c.conn.cut)
	if a, ok := ctx.Value(callKey{}).(*arrival); ok {
		c.cut, a.hold = a.cut, c.hold
	}
	messages := in.messages
	if c.counts == nil {
		messages = in.public
	}
	c.received = messages.Hold(func() {
		c.cut(fmt.Errorf("%w: others wait for the memory that its request is received into", service.ErrSlow))
	})
	return c
}

// enter takes the place of a call. Whoever needs no token, and shows none where there is one,
// has few places and little time, and is not counted.
func (c *call) enter(ctx context.Context) (leave func(), err error) {
	gate := c.in.opts.Gate
	err = gate.Authorize(first(ctx, ":authority"), first(ctx, "authorization"))
	switch {
	case c.counts == nil && !c.follows():
		return func() {}, gate.Host(first(ctx, ":authority"))
	case c.counts == nil && err != nil:
		if err := gate.Host(first(ctx, ":authority")); err != nil {
			return nil, err
		}
		leave, err := gate.Watches.Enter()
		if err != nil {
			return nil, err
		}
		timer := time.AfterFunc(max(c.in.opts.Write, time.Second), func() {
			c.cut(fmt.Errorf("%w: without a token this may not last longer", service.ErrSlow))
		})
		return func() { timer.Stop(); leave() }, nil
	case err != nil:
		return nil, err
	}
	return gate.Enter(c.follows())
}

// follows tells whether a call lasts as long as its client likes.
func (c *call) follows() bool {
	switch c.name {
	case "/varve.v1.EventService/Subscribe", "/grpc.health.v1.Health/Watch":
		return true
	}
	return c.counts == nil && c.name != "/grpc.health.v1.Health/Check" && c.name != "/grpc.health.v1.Health/List"
}

// serve serves a call that may come in.
func (c *call) serve(ctx context.Context, identify func(metadata.MD) error, serve func(context.Context) error) (err error) {
	in, code := c.in, codes.Internal // of a panic
	if c.counts != nil {
		begun := c.counts.Begin()
		defer func() { c.counts.End(begun, int(code)) }()
		if in.opts.Access != nil {
			var line *accesslog.Request
			ctx, line = accesslog.Begin(ctx, in.opts.Access, first(ctx, requestID), first(ctx, traceparent))
			_ = identify(metadata.Pairs(requestID, line.ID)) // a client that is gone needs none
			defer func() {
				line.End(ctx, slog.String("from", from(ctx)), slog.String("method", c.name), slog.String("status", code.String()))
			}()
		}
	}
	defer func() {
		// As in net/http, what goes wrong in one request does not end the others.
		if cause := recover(); cause != nil {
			in.opts.Log.Error("request", "method", c.name, "panic", cause, "stack", string(debug.Stack()))
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
	if code = st.Code(); service.Classify(err).Status >= http.StatusInternalServerError && status.Code(err) == codes.Unknown {
		in.opts.Log.Error("request", "method", c.name, "code", code, "error", err)
	}
	return st.Err()
}

// receive receives a message, while its time lasts.
func (c *call) receive(ctx context.Context, m any, receive func(any) error) error {
	if err := c.received.Take(ctx, int64(c.in.opts.MaxMessage)); err != nil {
		return fmt.Errorf("receive: %w", err)
	}
	c.received.Await()
	if t := c.in.opts.Receive; t > 0 {
		timer := time.AfterFunc(t, func() { c.cut(fmt.Errorf("%w: its request did not come in %s", service.ErrSlow, t)) })
		defer timer.Stop()
	}
	err := receive(m)
	c.received.Work()
	c.received.Shrink(size(m))
	return err
}
