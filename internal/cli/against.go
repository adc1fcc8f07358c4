package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/varvedb/varve/internal/source"
	"github.com/varvedb/varve/scaler"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
)

// partSource is the part of a report that compares a store with its source.
const partSource = "source"

// against compares a store with a source (multiplied, if the store was scaled
// from one) and adds the result to a report. If they cannot be compared, it
// adds the error to the report and returns it.
func (c *checkCmd) against(e *env, db *store.DB, src *source.Source, r *store.CheckReport) error {
	same, problem, err := c.compare(e, db, src)
	part := store.PartReport{Part: partSource, Outcome: store.Sound, Reason: same}
	switch {
	case errors.Is(err, store.ErrCorrupt):
		part.Outcome = store.Damaged
	case err != nil:
		part.Outcome = store.NotChecked
	}
	if err != nil {
		part.Reason = driver.Hide(err.Error(), c.URL, c.Against)
	}
	if problem != "" {
		part.Outcome, part.Reason = store.Damaged, ""
		r.Findings = append(r.Findings, store.Finding{Part: partSource, Problem: problem, Source: true})
	}
	r.Parts = append(r.Parts, part)
	if part.Outcome != store.Sound && r.Outcome != store.Damaged {
		r.Outcome = part.Outcome
	}
	return err
}

// compare compares each entity at its creation with the source's, up to the
// first difference. It compares creations, because both histories have them
// even if one was pruned. It returns the number of equal entities, or the
// difference.
func (c *checkCmd) compare(e *env, db *store.DB, src *source.Source) (same, problem string, err error) {
	ents, err := db.Entities(e.ctx, nil)
	if err != nil {
		return "", "", err
	}
	if !ents.Temporal() {
		return "", "", fmt.Errorf("entities: %w: layout %s does not keep them as they were created", store.ErrUnsupported, ents.Layout())
	}
	blocks, err := scaledFrom(e.ctx, ents, src)
	if err != nil {
		return "", "", err
	}
	bar := startBar(e.stderr, "check: "+partSource, "entities", 0)
	defer bar.Finish()
	next, stop := iter.Pull2(created(entity.Operations(ents.History(e.ctx))))
	defer stop()
	n := int64(0)
	for want, err := range created(blocks) {
		has, failed, _ := next()
		if err = cmp.Or(err, failed, e.ctx.Err()); err != nil {
			return "", "", err
		}
		if !sameEntity(has, want) {
			return "", fmt.Sprintf("%d entities are right, then the store has %s, expected %s", n, summed(has), summed(want)), nil
		}
		n++
		bar.Set(n)
	}
	has, err, more := next()
	if more && err == nil {
		problem = fmt.Sprintf("%d entities are right, then the store has %s, expected none", n, summed(has))
	}
	return fmt.Sprintf("%d entities are as they were created", n), problem, err
}

// The recorded origin of a store that was scaled from a source. "Hybrid" is the
// only method: half of each copy is in the original's blocks and half after
// them.
const scaledOrigin = "scaled: "

var scaledForm = regexp.MustCompile(`^scaled: .*, factor (\d+), hybrid, seed (\d+)$`)

// scaledFrom returns the blocks of a source, multiplied as often as the store
// was scaled.
func scaledFrom(ctx context.Context, ents *store.Entities, src *source.Source) (iter.Seq2[entity.Block, error], error) {
	origin, err := ents.Origin(ctx)
	if err != nil || !strings.HasPrefix(origin, scaledOrigin) {
		return src.Reopen(), err
	}
	parts := scaledForm.FindStringSubmatch(origin)
	if parts == nil {
		return nil, fmt.Errorf("%w: the store is %s", store.ErrUnsupported, origin)
	}
	var o scaler.ScaleOptions
	var wrong error
	o.Factor, err = strconv.ParseUint(parts[1], 10, 64)
	o.Seed, wrong = strconv.ParseUint(parts[2], 10, 64)
	return scaler.Scale(src.Reopen, o), errors.Join(err, wrong)
}

// summed describes an entity in a message.
func summed(x *entity.Entity) string {
	if x == nil {
		return "none"
	}
	return fmt.Sprintf("%s of block %d with %d bytes and %s", x.Key, x.CreatedAtBlock(), len(x.Content), attributes(x))
}

// sameEntity reports whether two entities are equal. It ignores their creators,
// because a history does not know the creator of an entity that changed its
// owner in its first block.
func sameEntity(a, b *entity.Entity) bool {
	return a != nil && a.Key == b.Key && a.Owner == b.Owner && a.Sequence == b.Sequence && a.Expiration == b.Expiration &&
		a.ContentType == b.ContentType && bytes.Equal(a.Content, b.Content) &&
		maps.Equal(a.StringAttributes, b.StringAttributes) && maps.Equal(a.NumericAttributes, b.NumericAttributes)
}

// created streams the entities that blocks create, as they are at the end of
// their first block, ordered by key within it.
func created(blocks iter.Seq2[entity.Block, error]) iter.Seq2[*entity.Entity, error] {
	return func(yield func(*entity.Entity, error) bool) {
		for b, err := range blocks {
			begun := map[entity.Key]bool{}
			b.Ops = slices.DeleteFunc(slices.Clone(b.Ops), func(op entity.Op) bool {
				// Drop operations on other entities, or on an earlier entity of
				// the same key.
				begun[op.Key] = begun[op.Key] || op.Kind == entity.Create
				return !begun[op.Key]
			})
			var set entity.Changeset
			if err == nil {
				set, err = entity.Fold(&b, nil, entity.Rules{Pruned: true})
			}
			if err != nil {
				yield(nil, err)
				return
			}
			for _, c := range set.Changes {
				if c.New != nil && !yield(c.New, nil) {
					return
				}
			}
		}
	}
}
