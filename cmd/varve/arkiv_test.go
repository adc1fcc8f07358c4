package main

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
)

// TestServeArkiv: a store is read by Arkiv's JSON-RPC, with the service or
// instead of it, while another process writes it.
func TestServeArkiv(t *testing.T) {
	at := url(t, "arkiv.db")
	db, err := store.Open(t.Context(), at, nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	ents, err := db.Entities(t.Context(), &store.EntityOptions{Layout: "compact"})
	require.NoError(t, err)
	apply := func(number uint64) {
		t.Helper()
		_, err := ents.Apply(t.Context(), entity.Block{Number: number, Ops: []entity.Op{{Kind: entity.Create, Key: entity.Key{31: byte(number)}, BTL: 100}}})
		require.NoError(t, err)
	}
	apply(7)
	for _, args := range [][]string{{"--listen=off", "--grpc=off"}, {"--read-only", "--listen=127.0.0.1:0", "--grpc=off", "--access-log"}} {
		r := begin(t, append([]string{"serve", at, "--arkiv=127.0.0.1:0", "--chain-id=42"}, args...)...)
		arkiv := r.says(t, `^REST on (?:no port|\S+), gRPC on no port, Arkiv on (\S+), .*, reading only\n`)[0]
		ask := func(method string) string {
			t.Helper()
			r, err := http.Post("http://"+arkiv, "application/json", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"`+method+`"}`))
			require.NoError(t, err)
			defer r.Body.Close()
			text, err := io.ReadAll(r.Body)
			require.NoError(t, err)
			return string(text)
		}
		require.Contains(t, ask("eth_chainId"), `"0x2a"`)
		before := ask("arkiv_getEntityCount")
		head, err := ents.Head(t.Context())
		require.NoError(t, err)
		apply(head.Number + 1)
		require.NotEqual(t, before, ask("arkiv_getEntityCount"))
		require.Contains(t, get(t, arkiv, "/metrics"), `varve_arkiv_calls_total{code="0",method="eth_chainId"} 1`)
		require.Zero(t, r.stop(), &r.errs)
		require.Equal(t, slices.Contains(args, "--access-log"), strings.Contains(r.errs.String(), "call=eth_chainId"))
	}
	// A store that has recorded its chain answers that one's id, and takes no other.
	require.NoError(t, ents.SetChain(t.Context(), store.Chain{ID: 9999, Genesis: entity.Hash{1}}))
	for _, args := range [][]string{nil, {"--chain-id=9999"}} {
		r := begin(t, append([]string{"serve", at, "--arkiv=127.0.0.1:0", "--read-only", "--listen=off", "--grpc=off"}, args...)...)
		arkiv := r.says(t, `Arkiv on (\S+),`)[0]
		res, err := http.Post("http://"+arkiv, "application/json", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}`))
		require.NoError(t, err)
		text, err := io.ReadAll(res.Body)
		require.NoError(t, errors.Join(err, res.Body.Close()))
		require.Contains(t, string(text), `"0x270f"`)
		require.Zero(t, r.stop(), &r.errs)
	}
	_, errs, code := varve(t, "serve", at, "--arkiv=127.0.0.1:0", "--read-only", "--listen=off", "--grpc=off", "--chain-id=42")
	require.NotZero(t, code)
	require.Contains(t, errs, "the store is of chain 9999")
	for _, args := range [][]string{
		{"--arkiv=off", "--listen=off", "--grpc=off"}, {"--arkiv=0.0.0.0:0", "--listen=off", "--grpc=off"}, {"--arkiv=127.0.0.1:0", "--block-time=0s", "--read-only"},
	} {
		_, _, code := varve(t, append([]string{"serve", at}, args...)...)
		require.NotZero(t, code, "%v", args)
	}
}
