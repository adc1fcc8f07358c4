package social

import (
	"context"
	"errors"
	"fmt"

	"github.com/varvedb/varve/bench"
)

// facts is what a store says of an object in a check by a viewer.
type facts struct {
	related [relationsEnd]Object // one subject of each relation
	present [relationsEnd]bool
}

// facts asks for one object.
func (v *View) facts(ctx context.Context, object, viewer Object) (f facts, err error) {
	rows, err := v.r.Query(ctx, v.s.text.facts, int64(object), int64(viewer))
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var relation, subject int64
		if err := rows.Scan(&relation, &subject); err != nil {
			return f, err
		}
		if relation < 1 || relation >= int64(relationsEnd) {
			return f, fmt.Errorf("%w: relation %d of %s", bench.ErrMismatch, relation, object)
		}
		f.related[relation], f.present[relation] = Object(subject), true
	}
	return f, rows.Err()
}

// steps is a check with a statement for each object on the way, as SpiceDB's
// subproblems are, for engines that look up objects faster than they join them.
func (v *View) steps(ctx context.Context, viewer, object Object) (bool, error) {
	f, err := v.facts(ctx, object, viewer)
	if err != nil {
		return false, err
	}
	switch object.Kind() {
	case User:
		return f.present[Self] && (f.related[Self] == viewer ||
			!f.present[Blocked] && (f.present[UserPublic] || f.present[UserFollowers] && f.present[Follower])), nil
	case Content:
		return v.contentSteps(ctx, viewer, f)
	}
	if !f.present[Creator] || !f.present[Parent] {
		return false, nil
	}
	creator, err := v.facts(ctx, f.related[Creator], viewer)
	if err != nil || creator.present[Blocked] {
		return false, err
	}
	return v.steps(ctx, viewer, f.related[Parent])
}

func (v *View) contentSteps(ctx context.Context, viewer Object, f facts) (bool, error) {
	if !f.present[Owner] || f.related[Owner] == viewer {
		return f.present[Owner], nil
	}
	owner, err := v.facts(ctx, f.related[Owner], viewer)
	return !owner.present[Blocked] && (f.present[ContentPublic] || f.present[ContentFollowers] && owner.present[Follower]), err
}
