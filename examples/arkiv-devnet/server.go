package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"

	ethrpc "github.com/ethereum/go-ethereum/rpc"

	"github.com/varvedb/varve/node/rpc"
)

// inProcess sends requests to a handler without a network between.
type inProcess struct{ handler http.Handler }

// RoundTrip implements http.RoundTripper.
func (t inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	t.handler.ServeHTTP(w, r)
	return w.Result(), nil
}

// url is one that requests in process go to.
const url = "http://devnet.invalid/"

// arkivAPI has Varve answer what is about entities, with its errors as they are.
type arkivAPI struct{ reads *ethrpc.Client }

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

func (a *arkivAPI) ask(ctx context.Context, method string, params ...any) (answer json.RawMessage, err error) {
	err = a.reads.CallContext(ctx, &answer, method, params...)
	return answer, err
}

// server answers clients over HTTP and WebSocket at one address.
type server struct {
	rpc    *ethrpc.Server
	socket http.Handler
	page   []byte
}

func newServer(c *Chain, reads *rpc.Handler, page []byte) (*server, error) {
	client, err := ethrpc.DialOptions(context.Background(), url, ethrpc.WithHTTPClient(&http.Client{Transport: inProcess{reads}}))
	if err != nil {
		return nil, err
	}
	s := &server{rpc: ethrpc.NewServer(), page: page}
	for name, api := range map[string]any{
		"eth":    &ethAPI{blocksAPI{c, c.seen}, &filters{list: map[ethrpc.ID]*filter{}}},
		"net":    &netAPI{c},
		"web3":   web3API{},
		"arkiv":  &arkivAPI{client},
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
