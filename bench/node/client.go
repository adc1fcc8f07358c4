package node

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/coder/websocket"
)

// Protocols are the ways to connect to a node; a client keeps its connection.
var Protocols = []string{"http", "ws"}

const (
	patience  = time.Minute // for an answer
	maxAnswer = 64 << 20    // bytes
)

// client is the connection of one client. It does little work, because it
// shares the processors with the node.
type client interface {
	// call sends a request and returns the answer, which is valid until the
	// next call.
	call(ctx context.Context, body []byte) ([]byte, error)
	close() error
}

func dial(ctx context.Context, protocol, address string) (client, error) {
	switch protocol {
	case "http":
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err != nil {
			return nil, err
		}
		stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
		return &overHTTP{conn: conn, from: bufio.NewReaderSize(conn, 32<<10), stop: stop}, nil
	case "ws":
		conn, resp, err := websocket.Dial(ctx, "ws://"+address+"/", nil)
		if err != nil {
			return nil, err
		}
		if resp.Body != nil {
			_ = resp.Body.Close()
		}
		conn.SetReadLimit(maxAnswer)
		return &overSocket{conn: conn}, nil
	}
	return nil, fmt.Errorf("unknown protocol %q: want http or ws", protocol)
}

// overHTTP is a connection of HTTP 1.1, without the goroutines of an http.Client, which would
// take from the processors of the node.
type overHTTP struct {
	conn net.Conn
	from *bufio.Reader
	in   bytes.Buffer
	stop func() bool
}

func (c *overHTTP) call(_ context.Context, body []byte) ([]byte, error) {
	out := fmt.Appendf(nil, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	if err := c.conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return nil, err
	}
	if _, err := c.conn.Write(out); err != nil {
		return nil, err
	}
	resp, err := http.ReadResponse(c.from, nil)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	c.in.Reset()
	if _, err = c.in.ReadFrom(io.LimitReader(resp.Body, maxAnswer)); err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %.80s", resp.Status, c.in.Bytes())
	}
	return c.in.Bytes(), err
}

func (c *overHTTP) close() error {
	if !c.stop() {
		return nil // it was closed when the context ended
	}
	return c.conn.Close()
}

// overSocket is a WebSocket connection.
type overSocket struct {
	conn *websocket.Conn
	in   bytes.Buffer
}

func (c *overSocket) call(ctx context.Context, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := c.conn.Write(ctx, websocket.MessageText, body); err != nil {
		return nil, err
	}
	_, from, err := c.conn.Reader(ctx)
	if err != nil {
		return nil, err
	}
	c.in.Reset()
	_, err = c.in.ReadFrom(from)
	return c.in.Bytes(), err
}

func (c *overSocket) close() error {
	err := c.conn.Close(websocket.StatusNormalClosure, "")
	if websocket.CloseStatus(err) != -1 || errors.Is(err, net.ErrClosed) || errors.Is(err, context.Canceled) {
		err = nil // the node said so first
	}
	return err
}
