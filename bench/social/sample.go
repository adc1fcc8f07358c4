package social

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/latency"
)

// Sample asks n questions of each of the steps, each about objects at random, on one
// view, and compares the answers. Half of the checks of users are by somebody who
// follows. It returns for each step how many were answered with nothing.
func Sample(ctx context.Context, s *Store, o *Oracle, steps []Step, n int, seed uint64) (none []int, err error) {
	none = make([]int, len(steps))
	v, err := s.View(ctx, o)
	if err != nil {
		return none, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	r, all := rand.New(rand.NewPCG(seed, 0)), newActive(o.g, 1)
	for k := range steps {
		for i := range n {
			q := all.question(r, &steps[k])
			if list := o.of(q.Object, Follower); i%2 == 0 && len(list) > 0 {
				q.Viewer = Object(list[r.IntN(len(list))])
			}
			got, err := v.Ask(ctx, q)
			if err == nil {
				err = o.Judge(v.Span, q, got)
			}
			if err != nil {
				return none, err
			}
			if len(got) == 0 {
				none[k]++
			}
		}
	}
	return none, nil
}

// Checks asks one check after the other about objects at random, an operation of the
// loop each and on a view of its own, whose opening and closing are in the latency.
func Checks(ctx context.Context, s *Store, o *Oracle, k Kind, loop bench.Loop) (*latency.Recorder, error) {
	rec, r, all := latency.NewRecorder(), rand.New(rand.NewPCG(1, uint64(k))), newActive(o.g, 1)
	step := Step{Check: k.String()}
	for loop.Loop() {
		q := all.question(r, &step)
		start := time.Now()
		v, err := s.View(ctx, o)
		if err != nil {
			return rec, err
		}
		got, err := v.Ask(ctx, q)
		err = errors.Join(err, v.Close())
		rec.Record(time.Since(start))
		if err == nil {
			err = o.Judge(v.Span, q, got)
		}
		if err != nil {
			return rec, err
		}
	}
	return rec, nil
}
