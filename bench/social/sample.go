package social

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/latency"
)

// Tally counts the answers of a sample by the kind of object.
type Tally struct{ Yes, No [kinds]int }

// Sample asks n checks of each kind and n/10 look-ups of each form, each about
// objects at random, on one view, and compares the answers. Half of the checks
// of users are by somebody who follows.
func Sample(ctx context.Context, s *Store, o *Oracle, n int, seed uint64) (t Tally, err error) {
	v, err := s.View(ctx, o)
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	r, all := rand.New(rand.NewPCG(seed, 0)), newActive(o.g, 1)
	for i := range n {
		for k := range kinds {
			viewer, object := all.pick(r, User), all.pick(r, k)
			if k == User && i%2 == 0 {
				viewer = o.anyFollower(r, object, viewer)
			}
			got, err := v.Check(ctx, viewer, object)
			if err == nil {
				err = o.JudgeCheck(v.Span, viewer, object, got)
			}
			if err != nil {
				return t, err
			}
			if got {
				t.Yes[k]++
			} else {
				t.No[k]++
			}
		}
	}
	for range n / 10 {
		if err := lookups(ctx, v, o, all.pick(r, User), all.pick(r, Content), r.IntN(2*defaultLimit)+1); err != nil {
			return t, err
		}
	}
	return t, nil
}

// Checks asks one check after the other about objects at random, an operation of the
// loop each and on a view of its own, whose opening and closing are in the latency.
func Checks(ctx context.Context, s *Store, o *Oracle, k Kind, loop bench.Loop) (*latency.Recorder, error) {
	rec, r, all := latency.NewRecorder(), rand.New(rand.NewPCG(1, uint64(k))), newActive(o.g, 1)
	for loop.Loop() {
		viewer, object := all.pick(r, User), all.pick(r, k)
		start := time.Now()
		v, err := s.View(ctx, o)
		if err != nil {
			return rec, err
		}
		may, err := v.Check(ctx, viewer, object)
		err = errors.Join(err, v.Close())
		rec.Record(time.Since(start))
		if err == nil {
			err = o.JudgeCheck(v.Span, viewer, object, may)
		}
		if err != nil {
			return rec, err
		}
	}
	return rec, nil
}

// anyFollower returns one of the first followers of a user, or another user when
// there is none.
func (o *Oracle) anyFollower(r *rand.Rand, user, other Object) Object {
	list := o.followers.of(user)
	if len(list) == 0 {
		return other
	}
	return Object(list[r.IntN(len(list))])
}

func lookups(ctx context.Context, v *View, o *Oracle, viewer, content Object, limit int) error {
	list, err := v.LookupContent(ctx, viewer, content, limit)
	if err == nil {
		err = o.JudgeContent(v.Span, viewer, content, limit, list)
	}
	if err != nil {
		return err
	}
	if list, err = v.LookupSubjects(ctx, content); err != nil {
		return err
	}
	return o.JudgeSubjects(v.Span, content, list)
}
