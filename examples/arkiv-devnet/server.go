package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"

	ethrpc "github.com/ethereum/go-ethereum/rpc"

	"github.com/varvedb/varve/node/rpc"
)

// inProcess sends requests to a handler without a network between.
type inProcess struct{ handler http.Handler }

// RoundTrip implements http.RoundTripper.
func (t inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	w := newAnswer()
	t.handler.ServeHTTP(w, r)
	return &http.Response{
		StatusCode: w.code, Status: http.StatusText(w.code), Header: w.header, Request: r,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, ContentLength: int64(w.body.Len()), Body: io.NopCloser(&w.body),
	}, nil
}

// answer keeps what a handler answers.
type answer struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

func newAnswer() *answer { return &answer{header: http.Header{}, code: http.StatusOK} }

func (w *answer) Header() http.Header            { return w.header }
func (w *answer) WriteHeader(code int)           { w.code = code }
func (w *answer) Write(text []byte) (int, error) { return w.body.Write(text) }

// arkivAPI has Varve answer what is about entities.
type arkivAPI struct{ reads http.Handler }

// Query serves arkiv_query.
func (a *arkivAPI) Query(ctx context.Context, text string, options *json.RawMessage) (json.RawMessage, error) {
	return a.ask(ctx, "arkiv_query", text, options)
}

// GetEntityCount serves arkiv_getEntityCount.
func (a *arkivAPI) GetEntityCount(ctx context.Context) (json.RawMessage, error) {
	return a.ask(ctx, "arkiv_getEntityCount")
}

// GetBlockTiming serves arkiv_getBlockTiming.
func (a *arkivAPI) GetBlockTiming(ctx context.Context) (json.RawMessage, error) {
	return a.ask(ctx, "arkiv_getBlockTiming")
}

// failure is an error as Varve's handler tells it, which clients get as it is.
type failure struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data"`
}

// Error implements error.
func (f *failure) Error() string { return f.Message }

// ErrorCode and ErrorData are told to clients.
func (f *failure) ErrorCode() int { return f.Code }

// ErrorData is where in a query something is wrong, or nil.
func (f *failure) ErrorData() any { return f.Data }

func (a *arkivAPI) ask(ctx context.Context, method string, params ...any) (json.RawMessage, error) {
	if params == nil {
		params = []any{}
	}
	body, err := json.Marshal(object{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "/", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	w := newAnswer()
	a.reads.ServeHTTP(w, r)
	var told struct {
		Result json.RawMessage `json:"result"`
		Error  *failure        `json:"error"`
	}
	if err := json.Unmarshal(w.body.Bytes(), &told); err != nil {
		return nil, err
	}
	if told.Error != nil {
		return nil, told.Error
	}
	return told.Result, nil
}

// server answers clients over HTTP and WebSocket at one address.
type server struct {
	rpc    *ethrpc.Server
	socket http.Handler
	page   []byte
}

func newServer(c *Chain, reads *rpc.Handler, page []byte) (*server, error) {
	s := &server{rpc: ethrpc.NewServer(), page: page}
	for name, api := range map[string]any{
		"eth":    &ethAPI{blocksAPI{c, c.seen}, &filters{list: map[ethrpc.ID]*filter{}}},
		"net":    &netAPI{c},
		"web3":   web3API{},
		"arkiv":  &arkivAPI{reads},
		"devnet": &devnetAPI{c},
	} {
		if err := s.rpc.RegisterName(name, api); err != nil {
			return nil, err
		}
	}
	s.socket = s.rpc.WebsocketHandler([]string{"*"})
	return s, nil
}

// ServeHTTP implements http.Handler. Any page of the web may call: what is here is for
// development, and the keys of its accounts are known to everybody.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Access-Control-Allow-Origin", "*")
	switch {
	case strings.EqualFold(r.Header.Get("Upgrade"), "websocket"):
		w.Header().Del("Access-Control-Allow-Origin")
		s.socket.ServeHTTP(w, r)
	case r.Method == http.MethodOptions:
		w.Header().Set("Access-Control-Allow-Methods", "POST, OPTIONS")
		w.Header().Set("Access-Control-Allow-Headers", "Content-Type")
		w.WriteHeader(http.StatusNoContent)
	case r.Method == http.MethodGet:
		w.Header().Set("Content-Type", "text/markdown; charset=utf-8")
		_, _ = w.Write(s.page)
	default:
		s.rpc.ServeHTTP(w, r)
	}
}
