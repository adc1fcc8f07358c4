package gobench

import (
	"fmt"
	"testing"

	"github.com/varvedb/varve/bench/serve"
	"github.com/varvedb/varve/internal/coreset"
)

// RunServiceEvents measures appends and decisions of several clients on one connection to
// a service, and in its process. An operation of the benchmark is a round: the requests of
// all clients.
func RunServiceEvents(b *testing.B, s Suite) {
	coreset.Skip(b)
	datasets, err := s.Flags.eventData()
	must(b, err)
	for _, data := range datasets {
		d := data.Dataset(s.Engine, "tags")
		d.Profile.Name = data.Name
		b.Run(s.Name(d), func(b *testing.B) {
			for _, protocol := range serve.EventProtocols {
				for _, w := range serve.EventWorkloads {
					b.Run(fmt.Sprintf("protocol=%s/op=%s/clients=%d", protocol, w.Name, w.Clients), func(b *testing.B) {
						r := s.Open(b, d)
						Report(b)(w.Run(b.Context(), r.DB, protocol, b))
					})
				}
			}
		})
	}
}
