package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"time"

	ethrpc "github.com/ethereum/go-ethereum/rpc"

	"github.com/varvedb/varve/node/rpc"
)

// server serves clients over HTTP and WebSocket at one address. Varve answers
// queries; the chain answers everything that a store does not have.
type server struct {
	reads *rpc.Handler
	chain *ethrpc.Server
	page  []byte
}

func newServer(ctx context.Context, c *Chain, blockTime time.Duration, page []byte) (_ *server, err error) {
	s := &server{chain: ethrpc.NewServer(), page: page}
	client, methods := ethrpc.DialInProc(s.chain), map[string]rpc.Method{}
	for prefix, api := range map[string]any{"eth": &ethAPI{c}, "devnet": &devnetAPI{c}} {
		if err := s.chain.RegisterName(prefix, api); err != nil {
			return nil, err
		}
		for m := range reflect.TypeOf(api).Methods() {
			name := prefix + "_" + strings.ToLower(m.Name[:1]) + m.Name[1:]
			methods[name] = func(ctx context.Context, params []json.RawMessage) (answer json.RawMessage, err error) {
				list := make([]any, len(params))
				for i := range params {
					list[i] = params[i]
				}
				return answer, plain(client.CallContext(ctx, &answer, name, list...))
			}
		}
	}
	s.reads, err = rpc.New(ctx, c.ents, rpc.Options{
		ChainID: c.id, BlockTime: blockTime, Poll: 10 * time.Millisecond, Origins: []string{"*"},
		Methods: methods, Logs: c.logs, Limits: rpc.Limits{Time: time.Minute},
	})
	return s, err
}

// plain returns an error without Go type names, which mean nothing to clients.
func plain(err error) error {
	if coded, ok := errors.AsType[ethrpc.Error](err); ok {
		message, _, _ := strings.Cut(coded.Error(), " into Go ")
		return &plainError{strings.ReplaceAll(message, "json: cannot unmarshal ", "not of its type: "), coded.ErrorCode()}
	}
	return err
}

type plainError struct {
	message string
	code    int
}

// Error implements error.
func (e *plainError) Error() string { return e.message }

// ErrorCode is the error's JSON-RPC code.
func (e *plainError) ErrorCode() int { return e.code }

// ServeHTTP implements http.Handler. Any web page may call it, because the
// chain is for development, and the keys of its accounts are public.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet && r.Header.Get("Upgrade") == "" {
		w.Header().Set("Access-Control-Allow-Origin", "*")
		w.Header().Set("Content-Type", "text/markdown; charset=utf-8")
		_, _ = w.Write(s.page)
		return
	}
	s.reads.ServeHTTP(w, r)
}

// Close ends WebSocket connections and background work.
func (s *server) Close() error {
	s.chain.Stop()
	return s.reads.Close()
}
