package rpc

import (
	"bufio"
	"bytes"
	"context"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/varvedb/varve/internal/accesslog"
)

const (
	closeTimeout = 3 * time.Second // for a client to end a connection after a closing message
	socketCalls  = 16              // of a connection at a time
	pingEvery    = 5 * time.Second // with Limits.Send: how long a client that is gone keeps its place
)

// socket is a WebSocket connection.
type socket struct {
	cancel  context.CancelFunc
	ctx     context.Context // of the connection, for what outlives a call on it
	conn    *websocket.Conn
	timeout time.Duration // for the client to take a message
	work    sync.WaitGroup
	calls   int // number of answered calls, for the log

	mu            sync.Mutex
	subscriptions map[string]func() // functions that end a subscription, by id
}

// serveSocket serves the messages of a WebSocket connection until it ends.
func (h *Handler) serveSocket(w http.ResponseWriter, r *http.Request) {
	select {
	case h.sockets <- struct{}{}:
		defer func() { <-h.sockets }()
	default:
		http.Error(w, "too many connections, or shutting down", http.StatusServiceUnavailable)
		return
	}
	s := &socket{timeout: h.opts.Limits.Send, subscriptions: map[string]func(){}}
	s.ctx, s.cancel = context.WithCancel(r.Context())
	defer s.cancel()
	taken := &hijacked{ResponseWriter: w}
	var err error
	s.conn, err = websocket.Accept(taken, r, &websocket.AcceptOptions{
		CompressionMode:    websocket.CompressionDisabled,
		InsecureSkipVerify: h.allowed(r.Header.Get("Origin")), // else only pages of the same host
	})
	if err != nil {
		h.opts.Log.Debug("websocket", "error", err) // the closing message was sent
		return
	}
	defer func() { _ = s.conn.CloseNow() }()
	s.conn.SetReadLimit(h.opts.Limits.Request)
	s.work.Go(s.ping)
	s.work.Go(func() { s.closeWith(h.closing, taken.conn) })
	h.readSocket(s)
	s.cancel()
	s.work.Wait()
	for _, end := range s.subscriptions { // subscriptions whose messages have not begun
		end()
	}
	accesslog.Add(r.Context(), slog.Int("calls", s.calls))
}

// closeWith sends the client a closing message when the handler closes.
func (s *socket) closeWith(closing <-chan struct{}, below net.Conn) {
	select {
	case <-s.ctx.Done():
	case <-closing:
		// Close the connection after a timeout, because the library waits
		// without limit for the rest of a message.
		timer := time.AfterFunc(closeTimeout, func() { _ = below.Close() })
		defer timer.Stop()
		_ = s.conn.Close(websocket.StatusGoingAway, "the node is shutting down") // the client may be gone
		s.cancel()
	}
}

// hijacked keeps the connection that was taken over from the HTTP server.
type hijacked struct {
	http.ResponseWriter
	conn net.Conn
}

// Hijack implements http.Hijacker.
func (h *hijacked) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(h.ResponseWriter).Hijack()
	h.conn = conn
	return conn, rw, err
}

// readSocket reads messages and answers them, several concurrently, until the
// connection ends.
func (h *Handler) readSocket(s *socket) {
	places := make(chan struct{}, socketCalls)
	for {
		_, body, err := s.conn.Reader(s.ctx) // web3.py sends JSON in binary messages
		if err != nil {
			return
		}
		in, mine := new(bytes.Buffer), h.memory.Hold(s.cancel)
		timer := time.AfterFunc(h.opts.Limits.Receive, s.cancel)
		err = h.receive(s.ctx, mine, in, body, -1)
		timer.Stop()
		if err != nil {
			mine.Release()
			return
		}
		select {
		case places <- struct{}{}:
		case <-s.ctx.Done():
			mine.Release()
			return
		}
		s.calls++
		s.work.Go(func() {
			defer func() { <-places }()
			defer mine.Done()
			m := message{hold: mine, size: int64(in.Cap()), socket: s}
			h.handle(s.ctx, &m, in.Bytes())
			mine.Shrink(m.size + int64(cap(m.out)))
			mine.Await()
			if len(m.out) > 0 && s.send(s.ctx, m.out) != nil {
				return
			}
			for _, f := range m.after {
				f()
			}
		})
	}
}

// send sends a message. A client that does not read it in time is cut off.
func (s *socket) send(ctx context.Context, text []byte) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	err := s.conn.Write(ctx, websocket.MessageText, text)
	if err != nil {
		s.cancel()
	}
	return err
}

func (s *socket) ping() {
	ticker := time.NewTicker(pingEvery)
	defer ticker.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-ticker.C:
		}
		ctx, cancel := context.WithTimeout(s.ctx, s.timeout)
		err := s.conn.Ping(ctx)
		cancel()
		if err != nil {
			s.cancel()
			return
		}
	}
}

func (s *socket) unsubscribe(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	end, ok := s.subscriptions[id]
	if ok {
		end()
		delete(s.subscriptions, id)
	}
	return ok
}
