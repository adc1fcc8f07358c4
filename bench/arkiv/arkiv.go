// Package arkiv measures commits of the embedded real Arkiv blocks.
package arkiv

import (
	"bytes"
	"context"
	"fmt"
	"iter"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/feed"
	"github.com/varvedb/varve/testdata"
)

// Blocks streams the blocks.
func Blocks() iter.Seq2[store.Block, error] {
	return feed.ReadTar(bytes.NewReader(testdata.ArkivBlocks))
}

// Apply applies blocks, each its own commit, to an empty store as bench.Commit does. It also checks the recorded digest of all of Blocks, so that
// a mistake shared by store and expectation is found.
func Apply(ctx context.Context, ents *store.Entities, blocks iter.Seq2[store.Block, error]) (bench.Result, error) {
	x := bench.NewExpectation(true)
	if err := x.CheckHead(ctx, ents); err != nil {
		return bench.Result{}, fmt.Errorf("arkiv: the store is not empty: %w", err)
	}
	res, err := bench.Commit(ctx, ents, bench.CommitConfig{Blocks: blocks, Expect: x})
	if err != nil {
		return res, fmt.Errorf("arkiv: %w", err)
	}
	if head := x.Head(); head.Block != testdata.ArkivHead || head.Digest.String() != testdata.ArkivDigest {
		return res, fmt.Errorf("arkiv: %w: block %d has digest %s, want block %d with %s",
			bench.ErrMismatch, head.Block, head.Digest, testdata.ArkivHead, testdata.ArkivDigest)
	}
	return res, nil
}
