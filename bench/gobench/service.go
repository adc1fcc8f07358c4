package gobench

import (
	"fmt"
	"testing"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/serve"
	"github.com/varvedb/varve/internal/coreset"
)

// RunService measures the workloads of the entity service over every protocol. An
// operation of the benchmark is a round: the requests of all clients.
func RunService(b *testing.B, s Suite) {
	coreset.Skip(b)
	n := serve.Entities
	if testing.Short() {
		n = 20 * serve.Clients
	}
	d := bench.Dataset{Profile: bench.Profile{Name: fmt.Sprintf("%dB", serve.PayloadBytes)}}
	s.eachLayout(b, d, firstInShort("compact", "arkiv"), func(b *testing.B, d bench.Dataset) {
		for _, protocol := range serve.Protocols {
			for _, w := range serve.Workloads {
				b.Run(fmt.Sprintf("protocol=%s/op=%s/clients=%d", protocol, w.Name, w.Clients), func(b *testing.B) {
					r := s.Open(b, d)
					Report(b)(w.Run(b.Context(), r.DB, protocol, n, b))
				})
			}
		}
	})
}
