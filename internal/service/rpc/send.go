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

// A message that is sent lies in gRPC's queue until its client opens its window, also when the
// call has ended. A client that does not take one in time loses its connection, because there is
// no other way to be rid of the message. A call that its client gives up is another matter: gRPC
// drops its messages, and the connection stays.

// large is the size of a message from which a stream waits until it was taken.
const large = 128 << 10

// outgoing is a message on its way to a client.
type outgoing struct {
	message any
	begin   func(size int) (taken func())
}

// reply sends the answer of a unary call. The call's memory is released when
// the client has taken the answer, which may be after the call has ended.
func (c *call) reply(stream grpc.ServerStream, m any) error {
	c.hold.Await()
	return c.deliver(stream, m, func(int) func() { return c.hold.Release })
}

// send sends a message of a stream. With a large one it waits until that was taken, so that it
// is held as long.
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

// deliver gives a message to gRPC and follows it. What begin returns for its size is called once
// when it was taken, or is not sent any more.
func (c *call) deliver(stream grpc.ServerStream, m any, begin func(size int) func()) error {
	taken := func() {}
	err := stream.SendMsg(&outgoing{m, func(size int) func() {
		taken = c.conn.follow(c.in.with.Timeouts.Write, begin(size))
		return taken
	}})
	// gRPC frees the messages in a stream's queue when the stream is reset. It
	// does not free a message that comes to the queue after that
	// (loopyWriter.preprocessData), so only a message that came before is known
	// to be freed.
	if stream.Context().Err() != nil {
		c.conn.written(taken)
	}
	return err
}

// codec encodes Protocol Buffers, and notices when a message was taken.
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
	// Smaller buffers are never released.
	const least = 2 << 10
	buffer := mem.DefaultBufferPool().Get(max(n, least))
	text, err := protobuf.MarshalOptions{UseCachedSize: true}.MarshalAppend((*buffer)[:0], m)
	if err != nil {
		mem.DefaultBufferPool().Put(buffer)
		return nil, err
	}
	*buffer = text
	return mem.BufferSlice{mem.NewBuffer(buffer, &follower{mem.DefaultBufferPool(), out.begin(n)})}, nil
}

// follower gives a buffer back, and notes that it was taken.
type follower struct {
	mem.BufferPool
	taken func()
}

// Put implements mem.BufferPool.
func (f *follower) Put(b *[]byte) {
	f.BufferPool.Put(b)
	f.taken()
}

// conn is the connection of a client, which can be found from a call.
type conn struct {
	net.Conn
	ctx     context.Context // until it is closed
	cancel  context.CancelFunc
	writing sync.Mutex // held while bytes are written, which ends when the client's machine takes them
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

// address is that of a client, with its connection.
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

// follow closes the connection unless the function that it returns is called in time. When that
// is called, or the connection is closed, done is called once.
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

// written calls a function when the write that is under way has ended, because
// gRPC has sent everything that was in its queue then. A client that takes no
// bytes at all cannot free its memory by cancelling calls.
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

// listener makes conns.
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
