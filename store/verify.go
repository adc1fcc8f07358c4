package store

import (
	"context"
	"errors"
	"fmt"
)

// maxProblems bounds what Verify lists.
const maxProblems = 20

// Verify checks a store against itself: the digest chain is computed anew from
// the versions and compared with the recorded one, and what the layout keeps
// more than once must agree. It reads everything once or twice, in memory that
// does not grow. A damaged store gives an error that wraps ErrCorrupt and names
// what is wrong. Of a pruned store, and of one whose layout keeps no history,
// the digest cannot be computed; Verified tells whether it was.
func (e *Entities) Verify(ctx context.Context) (Verified, error) {
	var v Verified
	problems, err := e.verifyRows(ctx)
	if err != nil {
		return v, fmt.Errorf("verify: %w", err)
	}
	if v, err = e.verifyDigest(ctx); err != nil {
		return v, fmt.Errorf("verify: %w", errors.Join(append(problems, err)...))
	}
	if len(problems) > 0 {
		return v, fmt.Errorf("verify: %w", errors.Join(problems...))
	}
	return v, nil
}

// Verified tells what Verify has checked.
type Verified struct {
	Head    BlockHead
	Changes uint64 // in the history
	Digest  bool   // the digest was computed anew
}

// verifyRows collects the contradictions within the layout.
func (e *Entities) verifyRows(ctx context.Context) (problems []error, err error) {
	var views [3]*Snapshot
	for i := range views {
		at := uint64(Head)
		if i > 0 {
			at = views[0].Block()
		}
		s, err := e.At(ctx, at)
		if err != nil {
			return nil, err
		}
		defer s.Close()
		views[i] = s
	}
	report := func(problem string) bool {
		problems = append(problems, fmt.Errorf("%w: %s", ErrCorrupt, problem))
		return len(problems) < maxProblems && ctx.Err() == nil
	}
	err = e.layout.Check(ctx, views[0].reader, views[1].reader, views[2].reader, report)
	return problems, errors.Join(err, ctx.Err())
}

func (e *Entities) verifyDigest(ctx context.Context) (v Verified, err error) {
	snap, err := e.At(ctx, Head)
	if err != nil {
		return v, err
	}
	v.Head = snap.Head()
	horizon := snap.horizon
	if err := snap.Close(); err != nil {
		return v, err
	}
	if !e.layout.Temporal() || horizon > 0 {
		return v, nil
	}
	var digest Digest
	for set, err := range e.History(ctx) {
		if err != nil {
			return v, err
		}
		v.Changes += uint64(len(set.Changes))
		digest = digest.Next(set)
	}
	v.Digest = true
	if digest != v.Head.Digest {
		return v, fmt.Errorf("%w: the versions have digest %s, recorded at block %d is %s", ErrCorrupt, digest, v.Head.Block, v.Head.Digest)
	}
	return v, nil
}
