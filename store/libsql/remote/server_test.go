package remote

import (
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"
	_ "github.com/mattn/go-sqlite3"
	"github.com/stretchr/testify/require"
)

// server speaks enough of Hrana (version 2 over HTTP, version 1 over WebSocket)
// for the client, in front of SQLite. It is made after the client and the
// protocol's text, not after a real server.
type server struct {
	*httptest.Server
	db    *sql.DB
	token string

	mu      sync.Mutex
	streams map[string]*sql.Conn
	next    int
	before  func(text string) (message string) // fails a statement if it says why
}

// newServer starts a server with an empty database.
func newServer(t *testing.T) *server {
	t.Helper()
	path := filepath.Join(t.TempDir(), "server.db")
	db, err := sql.Open("sqlite3", "file:"+path+"?_journal_mode=WAL&_busy_timeout=10")
	require.NoError(t, err)
	s := &server{db: db, token: "secret-token", streams: map[string]*sql.Conn{}}
	s.Server = httptest.NewServer(s)
	t.Cleanup(func() {
		s.Server.Close()
		s.forget()
		require.NoError(t, db.Close())
	})
	return s
}

// forget ends all streams, as a server does with idle ones.
func (s *server) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for baton, c := range s.streams {
		_, _ = c.ExecContext(context.Background(), "ROLLBACK")
		_ = c.Close()
		delete(s.streams, baton)
	}
}

type value struct {
	Type   string  `json:"type"`
	Value  any     `json:"value,omitempty"`
	Base64 *string `json:"base64,omitempty"`
}

type statement struct {
	SQL      string  `json:"sql"`
	Args     []value `json:"args"`
	WantRows bool    `json:"want_rows"`
}

type request struct {
	Type string     `json:"type"`
	Stmt *statement `json:"stmt"`
}

// ServeHTTP answers a pipeline, or a WebSocket.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") == "websocket" {
		s.serveSocket(w, r)
		return
	}
	if r.Header.Get("Authorization") != "Bearer "+s.token {
		http.Error(w, `{"error":"Unauthorized: you sent `+r.Header.Get("Authorization")+`"}`, http.StatusUnauthorized)
		return
	}
	var msg struct {
		Baton    string    `json:"baton"`
		Requests []request `json:"requests"`
	}
	if err := json.NewDecoder(r.Body).Decode(&msg); err != nil || r.URL.Path != "/v2/pipeline" {
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	baton, conn, err := s.stream(msg.Baton)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"message":%q,"code":"STREAM_EXPIRED"}`, err)
		return
	}
	var results []any
	for _, req := range msg.Requests {
		if req.Type == "close" {
			s.closeStream(baton)
			baton = ""
			results = append(results, map[string]any{"type": "ok", "response": map[string]any{"type": "close"}})
			continue
		}
		result, err := s.execute(r.Context(), conn, req.Stmt)
		if err != nil {
			results = append(results, map[string]any{"type": "error", "error": map[string]any{"message": "SQLite error: " + err.Error()}})
			continue
		}
		results = append(results, map[string]any{"type": "ok", "response": map[string]any{"type": "execute", "result": result}})
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"baton": baton, "results": results})
}

func (s *server) stream(baton string) (string, *sql.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if baton != "" {
		if c := s.streams[baton]; c != nil {
			return baton, c, nil
		}
		return "", nil, fmt.Errorf("the stream has expired")
	}
	c, err := s.db.Conn(context.Background())
	if err != nil {
		return "", nil, err
	}
	s.next++
	baton = strconv.Itoa(s.next)
	s.streams[baton] = c
	return baton, c, nil
}

func (s *server) closeStream(baton string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.streams[baton]; c != nil {
		_, _ = c.ExecContext(context.Background(), "ROLLBACK") // it may have none
		_ = c.Close()
		delete(s.streams, baton)
	}
}

func (s *server) execute(ctx context.Context, c *sql.Conn, stmt *statement) (any, error) {
	s.mu.Lock()
	before := s.before
	s.mu.Unlock()
	if before != nil {
		if message := before(stmt.SQL); message != "" {
			return nil, fmt.Errorf("%s", message)
		}
	}
	text := stmt.SQL
	if strings.HasPrefix(text, "BEGIN") {
		readOnly := strings.HasSuffix(text, " READONLY")
		text = strings.TrimSuffix(text, " TRANSACTION READONLY") // SQLite does not know it
		if _, err := c.ExecContext(ctx, fmt.Sprintf("PRAGMA query_only = %t", readOnly)); err != nil {
			return nil, err
		}
	}
	args := make([]any, len(stmt.Args))
	for i, v := range stmt.Args {
		args[i] = decode(v)
	}
	if !stmt.WantRows {
		res, err := c.ExecContext(ctx, text, args...)
		if err != nil {
			return nil, err
		}
		n, err := res.RowsAffected()
		return map[string]any{"cols": []any{}, "rows": []any{}, "affected_row_count": n}, err
	}
	rows, err := c.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	return encodeRows(rows)
}

func encodeRows(rows *sql.Rows) (any, error) {
	names, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	cols, list := []any{}, []any{}
	for _, name := range names {
		cols = append(cols, map[string]any{"name": name})
	}
	for rows.Next() {
		row, dest := make([]any, len(names)), make([]any, len(names))
		for i := range row {
			dest[i] = &row[i]
		}
		if err := rows.Scan(dest...); err != nil {
			return nil, err
		}
		for i := range row {
			row[i] = encode(row[i])
		}
		list = append(list, row)
	}
	return map[string]any{"cols": cols, "rows": list, "affected_row_count": 0}, rows.Err()
}

func decode(v value) any {
	switch v.Type {
	case "integer":
		n, _ := strconv.ParseInt(v.Value.(string), 10, 64)
		return n
	case "blob":
		b, _ := base64.RawStdEncoding.DecodeString(*v.Base64)
		if b == nil {
			b = []byte{}
		}
		return b
	}
	return v.Value
}

func encode(v any) value {
	switch v := v.(type) {
	case nil:
		return value{Type: "null"}
	case int64:
		return value{Type: "integer", Value: strconv.FormatInt(v, 10)}
	case []byte:
		text := base64.RawStdEncoding.EncodeToString(v)
		return value{Type: "blob", Base64: &text}
	case string:
		return value{Type: "text", Value: v}
	}
	return value{Type: "float", Value: v}
}

// serveSocket speaks Hrana over a WebSocket: one stream a connection.
func (s *server) serveSocket(w http.ResponseWriter, r *http.Request) {
	socket, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"hrana1"}})
	if err != nil {
		return
	}
	defer func() { _ = socket.CloseNow() }()
	socket.SetReadLimit(16 << 20)
	baton, conn, err := s.stream("")
	if err != nil {
		return
	}
	defer s.closeStream(baton)
	for {
		var msg struct {
			Type    string  `json:"type"`
			JWT     string  `json:"jwt"`
			ID      int     `json:"request_id"`
			Request request `json:"request"`
		}
		if err := wsjson.Read(r.Context(), socket, &msg); err != nil {
			return
		}
		answer := map[string]any{"type": "hello_ok"}
		switch {
		case msg.Type == "hello" && msg.JWT != s.token:
			answer = map[string]any{"type": "hello_error", "error": map[string]any{"message": "bad token " + msg.JWT}}
		case msg.Type == "request" && msg.Request.Stmt == nil:
			answer = map[string]any{"type": "response_ok", "request_id": msg.ID, "response": map[string]any{"type": msg.Request.Type}}
		case msg.Type == "request":
			result, err := s.execute(r.Context(), conn, msg.Request.Stmt)
			answer = map[string]any{"type": "response_ok", "request_id": msg.ID, "response": map[string]any{"type": "execute", "result": result}}
			if err != nil {
				answer = map[string]any{"type": "response_error", "request_id": msg.ID, "error": map[string]any{"message": "SQLite error: " + err.Error()}}
			}
		}
		if err := wsjson.Write(r.Context(), socket, answer); err != nil {
			return
		}
	}
}
