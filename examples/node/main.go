// Node shows how a chain node uses Varve: it opens a store, applies the blocks
// of a feed, answers queries at the head and at a past block, goes back over a
// reorganisation of the chain, and closes.
//
//	go run . blocks.tar sqlite:node.db
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/feed"
	"github.com/varvedb/varve/store/query"

	_ "github.com/varvedb/varve/store/sqlite" // links the engine behind sqlite: URLs
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: node BLOCKS.tar URL")
		os.Exit(2)
	}
	if err := run(ctx, os.Stdout, os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "node:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, tarPath, url string) (err error) {
	db, err := store.Open(ctx, url, &store.Options{Memory: 64 << 20})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	ents, err := db.Entities(ctx, nil)
	if err != nil {
		return err
	}
	if err := follow(ctx, out, ents, tarPath); err != nil {
		return err
	}
	head, err := ents.Head(ctx)
	if err != nil {
		return err
	}
	back := head.Number - 50
	for _, block := range []uint64{store.Head, back} {
		if err := answer(ctx, out, ents, block); err != nil {
			return err
		}
	}
	if err := ents.Rewind(ctx, back); err != nil {
		return err
	}
	if head, err = ents.Head(ctx); err != nil {
		return err
	}
	fmt.Fprintf(out, "rewound to block %d, digest %.16s\n", head.Number, head.Digest)
	return answer(ctx, out, ents, store.Head)
}

// follow applies the blocks that the store does not have yet.
func follow(ctx context.Context, out io.Writer, ents *store.Entities, tarPath string) error {
	tar, err := feed.OpenTar(tarPath)
	if err != nil {
		return err
	}
	defer tar.Close()
	head, err := ents.Head(ctx)
	if err != nil {
		return err
	}
	applied := 0
	for block, err := range tar.Blocks() {
		if err != nil {
			return err
		}
		if !head.Empty && block.Number <= head.Number {
			continue
		}
		result, err := ents.Apply(ctx, block)
		if err != nil {
			return err
		}
		head = result.Head
		applied++
	}
	fmt.Fprintf(out, "applied %d blocks, head %d, digest %.16s\n", applied, head.Number, head.Digest)
	return nil
}

// answer queries the busy proposals and nodes at a block.
func answer(ctx context.Context, out io.Writer, ents *store.Entities, block uint64) error {
	snap, err := ents.At(ctx, block)
	if err != nil {
		return err
	}
	defer snap.Close()
	q, err := query.Parse(`type = "node" || type = "proposal"`)
	if err != nil {
		return err
	}
	total, err := snap.Count(ctx, q)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "block %d: %d nodes and proposals; the newest:\n", snap.Number(), total)
	for e, err := range snap.Query(ctx, q, &store.QueryOptions{Limit: 2}) {
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "  %.18s… %s, %d bytes\n", e.Key, e.StringAttributes["type"], len(e.Content))
	}
	return nil
}
