package enrolment

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"runtime/debug"
	"time"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/pace"
	"github.com/varvedb/varve/bench/probe"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/event"
)

// reads is passes over what queries select.
type reads struct {
	data Data
	of   []event.Query

	// do makes a pass and returns the number of events, which is wanted.
	do func(ctx context.Context, evs *store.Events, of []event.Query, want int) (int, error)
}

// run records the latency of each pass. The number of events must be that of the data.
func (r reads) run(ctx context.Context, cp *bench.Copy, loop pace.Config) (bench.Result, error) {
	want := 0
	for _, q := range r.of {
		want += r.data.Count(q)
	}
	out, err := pace.Loop(ctx, loop, func(ctx context.Context, _ *pace.Step) error {
		n, err := r.do(ctx, cp.Events, r.of, want)
		if err == nil && n != want {
			err = fmt.Errorf("%w: %d events, want %d", bench.ErrMismatch, n, want)
		}
		return err
	})
	return bench.Result{Outcome: out, Events: uint64(out.Count) * uint64(want)}, err
}

func readAll(ctx context.Context, evs *store.Events, of []event.Query, _ int) (int, error) {
	return count(evs.Read(ctx, of[0], nil), -1)
}

// stream subscribes from the beginning, until as many events have come as are wanted.
func stream(ctx context.Context, evs *store.Events, of []event.Query, want int) (int, error) {
	return count(evs.Subscribe(ctx, of[0], 0), want)
}

func count(events iter.Seq2[event.Sequenced, error], limit int) (n int, err error) {
	for _, err := range events {
		if err != nil {
			return n, err
		}
		if n++; n == limit {
			break
		}
	}
	return n, nil
}

// project counts what the queries select, an event once for each that does.
func project(ctx context.Context, evs *store.Events, of []event.Query, _ int) (total int, err error) {
	projectors := make([]event.Projector, len(of))
	for i, q := range of {
		projectors[i] = event.NewProjection(q, 0, func(n int, _ *event.Sequenced) int {
			total++
			return n + 1
		})
	}
	_, err = event.Project(ctx, evs, projectors...)
	return total, err
}

// memory tells by how much memory grows while everything is read: that of the engine's processes,
// or of this one, which it is in.
func (r reads) memory(ctx context.Context, cp *bench.Copy, loop pace.Config) (bench.Result, error) {
	debug.FreeOSMemory()
	sampler := probe.Start(ctx, 10*time.Millisecond, cp.DB.Engine().Stats)
	res, err := r.run(ctx, cp, loop)
	samples := sampler.Stop()
	if err == nil {
		err = samples.Err
	}
	var first *int64
	rss := int64(0)
	for _, s := range samples.List {
		if first = cmp.Or(first, s.RSS); s.RSS != nil {
			rss = max(rss, *s.RSS-*first)
		}
	}
	res.More = append(res.More, bench.Metric{Value: float64(rss) / 1e6, Unit: "rss-MB"})
	return res, err
}
