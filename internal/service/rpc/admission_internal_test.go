package rpc

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	varvev1 "github.com/varvedb/varve/api/varve/v1"
	"github.com/varvedb/varve/internal/service"
)

// TestHealthIsForTheHost: the health of a service without a token is for this
// machine alone, as every other answer is.
func TestHealthIsForTheHost(t *testing.T) {
	gate, err := service.NewGate(service.GateOptions{Local: true})
	require.NoError(t, err)
	for host, want := range map[string]error{"localhost:8081": nil, "example.org": service.ErrHost} {
		for _, name := range []string{"/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/List", "/varve.v1.EntityService/Get"} {
			c := &call{in: &admission{with: service.Serving{Gate: gate}}, name: name}
			ctx := metadata.NewIncomingContext(context.Background(), metadata.Pairs(":authority", host))
			leave, err := c.enter(ctx)
			require.ErrorIs(t, err, want, "%s %s", host, name)
			if err == nil {
				leave()
			}
		}
	}
}

// TestLongestList: a list may have as many items as the bound says.
func TestLongestList(t *testing.T) {
	for more, want := range []error{nil, service.ErrTooLarge} {
		m := &varvev1.EventItem{Types: slices.Repeat([]string{""}, service.MaxList+more)}
		text, err := proto.Marshal(m)
		require.NoError(t, err)
		_, err = decodedBytes(text, m.ProtoReflect().Descriptor())
		require.ErrorIs(t, err, want)
	}
}
