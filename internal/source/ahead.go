package source

import (
	"context"
	"iter"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/varvedb/varve/store/entity"
)

// How far a stream is read ahead, in blocks and in bytes, because blocks are
// usually small but may be large.
const (
	aheadItems = 256
	aheadBytes = 8 << 20
)

// opBytes estimates the memory of an operation without its payload.
const opBytes = 512

// Ahead returns the source with its stream read ahead by a goroutine, so that
// decoding and applying run on different processors.
func (s *Source) Ahead() *Source {
	ahead := *s
	if s.Blocks != nil {
		ahead.Blocks = readAhead(s.Blocks, func(b *entity.Block) (n int) {
			for i := range b.Ops {
				n += opBytes + len(b.Ops[i].Content)
			}
			return n
		})
	}
	if s.History != nil {
		ahead.History = readAhead(s.History, func(set *entity.Changeset) (n int) {
			for i := range set.Changes {
				if n += opBytes; set.Changes[i].New != nil {
					n += len(set.Changes[i].New.Content)
				}
			}
			return n
		})
	}
	return &ahead
}

// readAhead reads a stream in a goroutine. Size returns the memory of an item.
// The goroutine ends before the loop does, so that the stream can be closed.
func readAhead[T any](stream iter.Seq2[T, error], size func(*T) int) iter.Seq2[T, error] {
	type item struct {
		value T
		err   error
		bytes int64
	}
	return func(yield func(T, error) bool) {
		ctx, cancel := context.WithCancel(context.Background())
		items := make(chan item, aheadItems)
		room := semaphore.NewWeighted(aheadBytes)
		var reading sync.WaitGroup
		defer reading.Wait()
		defer cancel()
		reading.Go(func() {
			defer close(items)
			for value, err := range stream {
				it := item{value, err, min(int64(size(&value)), aheadBytes)}
				if room.Acquire(ctx, it.bytes) != nil {
					return
				}
				select {
				case items <- it:
				case <-ctx.Done():
					return
				}
			}
		})
		for it := range items {
			room.Release(it.bytes)
			if !yield(it.value, it.err) {
				return
			}
		}
	}
}
