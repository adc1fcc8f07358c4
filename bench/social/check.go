package social

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/store/driver"
)

// check asks whether a viewer may see an object, by one statement, or by one for each
// object where the dialect has facts. The one takes the object, and then the viewer as
// often as it asks for it.
func (v *View) check(ctx context.Context, viewer, object Object) (bool, error) {
	if v.store.Statements["facts"] != "" {
		return v.steps(ctx, viewer, object)
	}
	text := v.store.Statements["check_"+object.Kind().String()]
	args := make([]any, strings.Count(text, "?"))
	for i := range args {
		args[i] = int64(viewer)
	}
	args[0] = int64(object)
	found, err := driver.QueryInt(ctx, v, text, args...)
	return found > 0, err
}

// facts is what a store says of an object in a check by a viewer: one subject of
// each relation that it has.
type facts map[Relation]Object

func (f facts) has(r Relation) bool { _, ok := f[r]; return ok }

// facts asks for one object.
func (v *View) facts(ctx context.Context, object, viewer Object) (f facts, err error) {
	rows, err := v.Query(ctx, v.store.Statements["facts"], int64(object), int64(viewer))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	f = facts{}
	for rows.Next() {
		var relation, subject int64
		if err := rows.Scan(&relation, &subject); err != nil {
			return nil, err
		}
		if relation < 1 || relation >= int64(relationsEnd) {
			return nil, fmt.Errorf("%w: relation %d of %s", bench.ErrMismatch, relation, object)
		}
		f[Relation(relation)] = Object(subject)
	}
	return f, rows.Err()
}

// steps is a check with a statement for each object on the way, as SpiceDB's
// subproblems are, for engines that look up objects faster than they join them.
func (v *View) steps(ctx context.Context, viewer, object Object) (bool, error) {
	f, err := v.facts(ctx, object, viewer)
	switch {
	case err != nil:
		return false, err
	case object.Kind() == User:
		return f.has(Self) && (f[Self] == viewer || !f.has(Blocked) && (f.has(UserPublic) || f.has(UserFollowers) && f.has(Follower))), nil
	case object.Kind() == Content && f.has(Owner):
		owner, err := v.facts(ctx, f[Owner], viewer)
		return f[Owner] == viewer || !owner.has(Blocked) && (f.has(ContentPublic) || f.has(ContentFollowers) && owner.has(Follower)), err
	case object.Kind() == Interaction && f.has(Creator) && f.has(Parent):
		creator, err := v.facts(ctx, f[Creator], viewer)
		if err != nil || creator.has(Blocked) {
			return false, err
		}
		return v.steps(ctx, viewer, f[Parent])
	}
	return false, nil
}
