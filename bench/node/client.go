package node

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	"github.com/coder/websocket"
)

// Protocols are the ways to a node, each over a connection that a client keeps.
var Protocols = []string{"http", "ws"}

const (
	patience  = time.Minute // for an answer
	maxAnswer = 64 << 20    // bytes
)

// client is a connection of one client. It does as little as it can, since it takes from
// the processors of the node.
type client interface {
	// call sends a request and returns the answer, which is good until the next call.
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

// overHTTP is a connection of HTTP 1.1.
type overHTTP struct {
	conn    net.Conn
	from    *bufio.Reader
	out, in []byte
	stop    func() bool
}

func (c *overHTTP) call(_ context.Context, body []byte) ([]byte, error) {
	c.out = append(c.out[:0], "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "...)
	c.out = append(append(strconv.AppendInt(c.out, int64(len(body)), 10), "\r\n\r\n"...), body...)
	if err := c.conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return nil, err
	}
	if _, err := c.conn.Write(c.out); err != nil {
		return nil, err
	}
	status, err := c.from.ReadString('\n')
	if err != nil {
		return nil, err
	}
	n := -1
	for {
		line, err := c.from.ReadSlice('\n')
		if err != nil {
			return nil, err
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			break
		}
		if value, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			if n, err = strconv.Atoi(string(value)); err != nil {
				return nil, err
			}
		}
	}
	if n < 0 || n > maxAnswer || len(status) < 12 || status[9:12] != "200" {
		return nil, fmt.Errorf("an answer of %d bytes: %q", n, status)
	}
	if cap(c.in) < n {
		c.in = make([]byte, n+n/4)
	}
	c.in = c.in[:n]
	_, err = io.ReadFull(c.from, c.in)
	return c.in, err
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
