package rebac

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/varvedb/varve/bench"
)

// VerifyConfig says how much is asked. Zero asks for everything.
type VerifyConfig struct {
	Checks int // at most so many checks of each permission, evenly over all pairs of a user and a resource
	Lists  int // at most so many listings of each kind and permission
}

// Verify asks everything there is to ask: each user with each resource, the
// resources of each user, the users of each resource, and all questions of the
// scenarios, and compares each answer, every id of it, with the oracle's. It fails
// with bench.ErrMismatch at the first difference.
func (s *Store) Verify(ctx context.Context, d *Data, o *Oracle, c Closure, cfg VerifyConfig) (err error) {
	if c == Materialised {
		if err := s.CheckClosure(ctx, o); err != nil {
			return err
		}
	}
	client, err := s.Client(ctx, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	v := verifier{client: client, data: d, oracle: o}
	for _, p := range []Permission{Manage, View} {
		if err := errors.Join(v.checks(ctx, p, cfg.Checks), v.resources(ctx, p, cfg.Lists), v.users(ctx, p, cfg.Lists)); err != nil {
			return fmt.Errorf("verify, closure %s: %w", c, err)
		}
	}
	scenarios, err := Scenarios(d, o)
	if err != nil {
		return err
	}
	for i := range scenarios {
		a := client.asker(&scenarios[i])
		for q := range min(len(a.args), limit(cfg.Checks)) {
			if err := a.ask(ctx, q); err != nil {
				return fmt.Errorf("verify: %w", err)
			}
		}
	}
	return nil
}

// verifier compares answers.
type verifier struct {
	client *Client
	data   *Data
	oracle *Oracle
}

// limit returns a bound, or one that no count reaches.
func limit(n int) int {
	if n == 0 {
		return 1 << 30
	}
	return n
}

func (v *verifier) checks(ctx context.Context, p Permission, most int) error {
	pairs := v.data.Size.Users * v.data.Size.Resources
	n := min(pairs, limit(most))
	for k := range n {
		at := k * pairs / n
		user, resource := at%v.data.Size.Users+1, at/v.data.Size.Users+1
		may, err := v.client.Check(ctx, p, user, resource)
		if err != nil {
			return err
		}
		if want := v.oracle.May(p, user, resource); may != want {
			return fmt.Errorf("%w: may user %d %s resource %d: %t, want %t", bench.ErrMismatch, user, p, resource, may, want)
		}
	}
	return nil
}

func (v *verifier) resources(ctx context.Context, p Permission, most int) error {
	return v.lists(v.data.Size.Users, most, func(user int, got, want func(id int)) error {
		v.oracle.Resources(p, user, want)
		return v.client.Resources(ctx, p, user, func(id int64) { got(int(id)) })
	})
}

func (v *verifier) users(ctx context.Context, p Permission, most int) error {
	return v.lists(v.data.Size.Resources, most, func(resource int, got, want func(id int)) error {
		v.oracle.Users(p, resource, want)
		return v.client.Users(ctx, p, resource, func(id int64) { got(int(id)) })
	})
}

// lists compares the sets that f gives for the ids from 1 to all.
func (v *verifier) lists(all, most int, f func(id int, got, want func(id int)) error) error {
	n := min(all, limit(most))
	for k := range n {
		id := k*all/n + 1
		var got, want []int
		if err := f(id, func(i int) { got = append(got, i) }, func(i int) { want = append(want, i) }); err != nil {
			return err
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			return fmt.Errorf("%w: listing of %d: %d ids, want %d: %v, want %v", bench.ErrMismatch, id, len(got), len(want), got, want)
		}
	}
	return nil
}
