package main

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
)

// TestServeArkiv: a store is read by Arkiv's JSON-RPC, beside the service or instead of it,
// while somebody else writes it.
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
	for _, args := range [][]string{
		{"--arkiv=off", "--listen=off", "--grpc=off"}, {"--arkiv=0.0.0.0:0", "--listen=off", "--grpc=off"}, {"--arkiv=127.0.0.1:0", "--block-time=0s", "--read-only"},
	} {
		_, _, code := varve(t, append([]string{"serve", at}, args...)...)
		require.NotZero(t, code, "%v", args)
	}
}
