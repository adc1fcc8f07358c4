package rpc

import (
	"context"
	"errors"
	"math"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/peer"
	protobuf "google.golang.org/protobuf/proto"

	"github.com/varvedb/varve/internal/service"
)

// A sent message stays in gRPC's queue until its client opens its flow-control
// window, even after the call has ended. A client that does not receive one in
// time loses its connection, because there is no other way to free the message.
// If a client cancels a call, gRPC drops the call's messages, and the
// connection stays.

// large is the size from which a stream waits until a message was received.
const large = 128 << 10

// outgoing is a message on its way to a client.
type outgoing struct {
	message any
	begin   func(size int) (taken func())
}

// reply sends the answer of a unary call. The call's memory is released when
// the client has received the answer, which may be after the end of the call.
func (c *call) reply(stream grpc.ServerStream, m any) error {
	c.hold.Await()
	return c.deliver(stream, m, func(int) func() { return c.hold.Release })
}

// send sends a message of a stream. For a large one it waits until it was
// received, so that its memory is reserved until then.
func (c *call) send(stream grpc.ServerStream, m any) error {
	if timeout := c.in.with.Timeouts.Write; timeout > 0 {
		timer := time.AfterFunc(timeout, c.conn.cut) // while small ones fill the queue
		defer timer.Stop()
	}
	var taken chan struct{}
	err := c.deliver(stream, m, func(size int) func() {
		if size < large {
			return func() {}
		}
		taken = make(chan struct{})
		return func() { close(taken) }
	})
	if err == nil && taken != nil {
		<-taken
	}
	if c.conn.gone() {
		return errors.Join(service.ErrSlow, err)
	}
	return err
}

// deliver passes a message to gRPC and follows it. It calls begin with the
// message's size. The function that begin returns is called once, when the
// message was received or will not be sent any more.
func (c *call) deliver(stream grpc.ServerStream, m any, begin func(size int) func()) error {
	taken := func() {}
	err := stream.SendMsg(&outgoing{m, func(size int) func() {
		taken = c.conn.follow(c.in.with.Timeouts.Write, begin(size))
		return taken
	}})
	// gRPC frees the messages in a stream's queue when the stream is reset, but
	// not a message that is queued after that (loopyWriter.preprocessData). So
	// only a message that was queued before is known to be freed.
	if stream.Context().Err() != nil {
		c.conn.written(taken)
	}
	return err
}

// codec encodes Protocol Buffers, and detects when a message was received.
type codec struct{ encoding.CodecV2 }

// Name implements encoding.CodecV2.
func (codec) Name() string { return proto.Name }

var protocol = encoding.GetCodecV2(proto.Name)

// Marshal implements encoding.CodecV2.
func (codec) Marshal(v any) (mem.BufferSlice, error) {
	out, ok := v.(*outgoing)
	if !ok {
		return protocol.Marshal(v)
	}
	m, ok := out.message.(protobuf.Message)
	if !ok {
		return protocol.Marshal(out.message) // it names the fault
	}
	n := protobuf.Size(m)
	// gRPC never releases smaller buffers.
	const least = 2 << 10
	buffer := mem.DefaultBufferPool().Get(max(n, least))
	text, err := protobuf.MarshalOptions{UseCachedSize: true}.MarshalAppend((*buffer)[:0], m)
	if err != nil {
		mem.DefaultBufferPool().Put(buffer)
		return nil, err
	}
	*buffer = text
	return mem.BufferSlice{mem.NewBuffer(buffer, &releasedBuffer{mem.DefaultBufferPool(), out.begin(n)})}, nil
}

// releasedBuffer is the pool of one buffer. gRPC puts the buffer back when the
// client's machine has received it, which calls released.
type releasedBuffer struct {
	mem.BufferPool
	released func()
}

// Put implements mem.BufferPool.
func (f *releasedBuffer) Put(b *[]byte) {
	f.BufferPool.Put(b)
	f.released()
}

// conn is the connection of a client, which can be found from a call.
type conn struct {
	net.Conn
	ctx     context.Context // until it is closed
	cancel  context.CancelFunc
	writing sync.Mutex // held during a write, which ends when the client's machine accepts the bytes
}

// Write implements net.Conn.
func (c *conn) Write(b []byte) (int, error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	return c.Conn.Write(b)
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.cancel()
	return c.Conn.Close()
}

// RemoteAddr implements net.Conn.
func (c *conn) RemoteAddr() net.Addr { return &address{c.Conn.RemoteAddr(), c} }

// address is a client's address, with its connection.
type address struct {
	net.Addr
	conn *conn
}

func connOf(ctx context.Context) *conn {
	if p, ok := peer.FromContext(ctx); ok {
		if a, ok := p.Addr.(*address); ok {
			return a.conn
		}
	}
	return nil
}

// cut closes the connection.
func (c *conn) cut() {
	if c != nil {
		_ = c.Close() // it is of no use any more
	}
}

func (c *conn) gone() bool { return c != nil && c.ctx.Err() != nil }

// follow closes the connection unless the returned function is called in time.
// When that is called, or the connection is closed, done is called once.
func (c *conn) follow(timeout time.Duration, done func()) (taken func()) {
	once := sync.OnceFunc(done)
	if c == nil {
		return once
	}
	stop := context.AfterFunc(c.ctx, once)
	if timeout == 0 {
		timeout = math.MaxInt64
	}
	timer := time.AfterFunc(timeout, c.cut)
	return func() {
		timer.Stop()
		stop()
		once()
	}
}

// written calls a function when the current write has ended, because gRPC has
// then sent everything that was queued before. So a client that receives
// nothing at all cannot free its memory by cancelling calls.
func (c *conn) written(done func()) {
	if c == nil || c.writing.TryLock() {
		if c != nil {
			c.writing.Unlock()
		}
		done()
		return
	}
	go func() {
		c.writing.Lock()
		defer c.writing.Unlock()
		done()
	}()
}

// listener wraps accepted connections in conns.
type listener struct{ net.Listener }

// Accept implements net.Listener.
func (l listener) Accept() (net.Conn, error) {
	raw, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: raw}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c, nil
}

// Serve serves the connections of a listener until the server is stopped.
func (s *Server) Serve(l net.Listener) error { return s.Server.Serve(listener{l}) }
