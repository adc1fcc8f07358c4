package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/cli"
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
		var out, errs output
		ctx, stop := context.WithCancel(t.Context())
		code := make(chan int, 1)
		go func() {
			code <- cli.Run(ctx, append([]string{"serve", at, "--arkiv=127.0.0.1:0", "--chain-id=42"}, args...), &out, &errs)
		}()
		require.Eventually(t, func() bool { return strings.Contains(out.String(), "\n") || len(code) > 0 }, 20*time.Second, 5*time.Millisecond)
		line := regexp.MustCompile(`^REST on (no port|\S+), gRPC on no port, Arkiv on (\S+), .*, reading only\n`).FindStringSubmatch(out.String())
		require.NotNil(t, line, "%s%s", out.String(), errs.String())
		ask := func(method string) string {
			t.Helper()
			r, err := http.Post("http://"+line[2], "application/json", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"`+method+`"}`))
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
		r, err := http.Get("http://" + line[2] + "/metrics")
		require.NoError(t, err)
		var text bytes.Buffer
		_, err = text.ReadFrom(r.Body)
		require.NoError(t, errors.Join(err, r.Body.Close()))
		problems, err := promlint.New(strings.NewReader(text.String())).Lint()
		require.NoError(t, err)
		require.Empty(t, problems)
		require.Contains(t, text.String(), `varve_arkiv_calls_total{code="0",method="eth_chainId"} 1`)
		stop()
		require.Zero(t, <-code, errs.String())
		require.Equal(t, strings.Contains(strings.Join(args, " "), "access"), strings.Contains(errs.String(), "call=eth_chainId"))
	}
	for _, args := range [][]string{
		{"--arkiv=off", "--listen=off", "--grpc=off"}, {"--arkiv=0.0.0.0:0", "--listen=off", "--grpc=off"}, {"--arkiv=127.0.0.1:0", "--block-time=0s", "--read-only"},
	} {
		var out, errs output
		require.NotZero(t, cli.Run(t.Context(), append([]string{"serve", at}, args...), &out, &errs), "%v", args)
	}
}
