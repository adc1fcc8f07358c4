package bench

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/feed"
	"github.com/varvedb/varve/testdata"
)

// What a store holds after the embedded real blocks.
const (
	TarBlocks = 100
	TarHead   = 1263
	TarDigest = "693ace66b897f11e30f34e9bec4324394f8ab10813f9cb26a6fe899300259287"
)

// Tar returns the embedded real Arkiv blocks.
func Tar() ([]store.Block, error) {
	var blocks []store.Block
	for b, err := range feed.ReadTar(bytes.NewReader(testdata.ArkivBlocks)) {
		if err != nil {
			return nil, err
		}
		blocks = append(blocks, b)
	}
	return blocks, nil
}

// TarConfig is the embedded real Arkiv blocks, each its own commit, applied to
// an empty store.
type TarConfig struct {
	Blocks []store.Block // as Tar gives them
	Timer  Loop          // its timer is stopped for pauses; its Loop is not asked. May be nil
}

// ApplyTar applies the blocks as Commit does. It also checks the recorded
// digest, so that a mistake shared by store and Expectation is found.
func ApplyTar(ctx context.Context, ents *store.Entities, cfg TarConfig) (Result, error) {
	x := NewExpectation(true)
	if err := x.CheckHead(ctx, ents); err != nil {
		return NewResult(), fmt.Errorf("apply tar: the store is not empty: %w", err)
	}
	res, err := Commit(ctx, ents, CommitConfig{Blocks: each(cfg.Blocks), Expect: x, Loop: toTheEnd{orOnce(cfg.Timer)}})
	if err != nil {
		return res, fmt.Errorf("apply tar: %w", err)
	}
	if head := x.Head(); head.Block != TarHead || head.Digest.String() != TarDigest {
		return res, fmt.Errorf("apply tar: %w", mismatch("block %d has digest %s, want block %d with %s", head.Block, head.Digest, TarHead, TarDigest))
	}
	return res, nil
}

func each(blocks []store.Block) func(yield func(store.Block, error) bool) {
	return func(yield func(store.Block, error) bool) {
		for b := range slices.Values(blocks) {
			if !yield(b, nil) {
				return
			}
		}
	}
}
