package bench

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/varvedb/varve/bench/mix"
	"github.com/varvedb/varve/bench/pace"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
)

// CommitConfig configures a run that applies blocks in order. In a closed loop
// the next block is applied when the previous one is durable; in an open loop
// blocks arrive at a fixed rate of rows, whether or not the previous one is
// committed.
type CommitConfig struct {
	pace.Config // with one worker; it ends with Blocks at the latest

	// Blocks are generated outside of the measured time. With Expect the stream
	// is read twice, so both iterations must yield the same blocks.
	Blocks Stream

	// RowRate, if not 0, is the arrival rate in rows a second: a block is due
	// when the rows of all earlier blocks have arrived.
	RowRate float64

	// Expect holds the store's contents before the first block. After the run
	// it follows the blocks, and each head, and then the store, is compared
	// with it. Nil means no check.
	Expect *Expectation

	// Mix, if not nil, follows each block before it is applied, for concurrent
	// readers.
	Mix mix.Reads

	// Observe, if not nil, is called after each commit, outside of the measured
	// time. The block is valid until it returns.
	Observe func(b *entity.Block, took time.Duration)
}

// readBack is how many entities of the last block Commit reads again.
const readBack = 8

// Commit applies blocks and records their latencies; in an open loop a latency
// counts from the scheduled start. With an expectation, Result.Check compares
// the head after each block by its digest, and then the visible entities, the
// rows and some whole entities. It fails with ErrMismatch on any difference.
// Commit fails if the warm-up used up all blocks.
func Commit(ctx context.Context, ents *store.Entities, cfg CommitConfig) (Result, error) {
	w := newBlockWriter(ents, cfg)
	defer w.stop()
	return w.commit(ctx)
}

func (w *blockWriter) commit(ctx context.Context) (Result, error) {
	out, err := w.run(ctx)
	if err == nil && w.ended && w.WarmUp > 0 && out.Count == 0 {
		err = fmt.Errorf("all blocks were applied within the warm-up of %v, and none was timed: more data are needed", w.WarmUp)
	}
	res := Result{Outcome: out, Entities: w.entities, Rows: w.rows}
	if w.Expect != nil {
		res.Check = w.check
	}
	if err != nil {
		err = fmt.Errorf("commit: %w", err)
	}
	return res, err
}

// blocksAhead is how many blocks are generated ahead. It is small because a
// block may be megabytes.
const blocksAhead = 4

// blockWriter applies one block after the other.
type blockWriter struct {
	CommitConfig
	ents *store.Entities
	next func() (entity.Block, error, bool)
	stop func()

	block, last entity.Block // the next block to write, and the one before it
	ended       bool
	failed      error // error of drawing the first block

	entities, rows uint64              // after the warm-up, as Written counts them
	heads          []store.BlockHeader // after each block, with Expect
}

// newBlockWriter returns the writer of a loop. Another goroutine generates the
// blocks, because a closed loop that generated them between two commits would
// measure the generating too. The first block is drawn here, outside of the
// measured time: it may take seconds, because a generator skips the blocks that
// the store already has.
func newBlockWriter(ents *store.Entities, cfg CommitConfig) *blockWriter {
	w := &blockWriter{CommitConfig: cfg, ents: ents}
	w.next, w.stop = pace.Ahead(w.Blocks, blocksAhead)
	w.failed = w.draw()
	return w
}

// run applies blocks to the end.
func (w *blockWriter) run(ctx context.Context) (*pace.Outcome, error) {
	if w.failed != nil {
		return new(pace.Outcome), w.failed
	}
	loop := w.Config
	if due := 0.0; w.RowRate > 0 {
		loop.Arrivals = func() time.Duration {
			at := due
			_, rows := Written(&w.block)
			due += float64(rows) / w.RowRate
			return time.Duration(at * float64(time.Second))
		}
	}
	loop.More = func() bool { return !w.ended && (w.More == nil || w.More()) }
	return pace.Loop(ctx, loop, w.apply)
}

// draw takes the next block and passes it to the read mix.
func (w *blockWriter) draw() (err error) {
	var more bool
	w.block, err, more = w.next()
	w.ended = !more
	if more && err == nil && w.Mix != nil {
		err = w.Mix.Advance(&w.block)
	}
	return err
}

// apply commits the drawn block and draws the next.
func (w *blockWriter) apply(ctx context.Context, s *pace.Step) error {
	s.Kind = "commit"
	start := time.Now()
	err := w.write(ctx)
	s.Stop()
	took := time.Since(start)
	if err != nil {
		return err
	}
	if s.Measured {
		w.count()
	}
	if w.Observe != nil {
		w.Observe(&w.last, took)
	}
	return w.draw()
}

// write commits the drawn block.
func (w *blockWriter) write(ctx context.Context) error {
	applied, err := w.ents.Apply(ctx, w.block)
	if err == nil {
		w.last = w.block
		if w.Expect != nil {
			w.heads = append(w.heads, applied.Head)
		}
	}
	return err
}

// count adds the last block to the totals.
func (w *blockWriter) count() {
	entities, rows := Written(&w.last)
	w.entities, w.rows = w.entities+uint64(entities), w.rows+uint64(rows)
}

// check makes the expectation follow the applied blocks, compares the head
// after each, and then the store. It generates the blocks a second time,
// because a check between two commits, or in another goroutine meanwhile, would
// slow down the measured engine.
func (w *blockWriter) check(ctx context.Context) error {
	done := 0
	for b, err := range w.Blocks {
		if done == len(w.heads) {
			break
		}
		if err == nil {
			err = w.Expect.Apply(&b)
		}
		if err == nil {
			err = sameHead(w.heads[done], w.Expect.head)
		}
		if err != nil {
			return err
		}
		done++
	}
	if err := w.Expect.Check(ctx, w.ents); err != nil {
		return err
	}
	return checkCreated(ctx, w.ents, w.last)
}

// EachCommit returns commits of blocks as single operations, on a store that
// the expectation describes. They are checked as in Commit, by the heads after
// as many blocks.
func EachCommit(ents *store.Entities, cfg CommitConfig) *Operations {
	w := &blockWriter{CommitConfig: cfg, ents: ents}
	w.next, w.stop = iter.Pull2(w.Blocks)
	return &Operations{
		release: w.stop,
		Prepare: func(int) error {
			if err := w.draw(); err != nil || !w.ended {
				return err
			}
			return fmt.Errorf("all blocks are applied, the last is block %d: there are no more operations", w.last.Number)
		},
		Do: func(ctx context.Context, _ int) error {
			err := w.write(ctx)
			if err == nil {
				w.count()
			}
			return err
		},
		Check: func(ctx context.Context, n int64) error {
			if done := len(w.heads); int64(done) != n {
				return mismatch("%d commits for %d operations", done, n)
			}
			return w.check(ctx)
		},
		Rows: func() uint64 { return w.rows },
	}
}

func setsContents(op *entity.Op) bool { return op.Kind == entity.Create || op.Kind == entity.Update }

// Written returns the entities that a block creates or replaces whole, and their rows in
// a layout with a row for each attribute.
func Written(b *entity.Block) (entities, rows int) {
	for i := range b.Ops {
		if op := &b.Ops[i]; setsContents(op) {
			entities++
			rows += len(op.StringAttributes) + syntheticStrings + len(op.NumericAttributes) + syntheticNumbers + 1
		}
	}
	return entities, rows
}

// checkCreated reads entities of a block again and compares them with the operations that made them.
func checkCreated(ctx context.Context, ents *store.Entities, b entity.Block) error {
	reader, left := mix.NewReader(ents, nil), readBack
	for i := range b.Ops {
		op := &b.Ops[i]
		later := func(o entity.Op) bool { return o.Key == op.Key }
		if left == 0 || !setsContents(op) || slices.ContainsFunc(b.Ops[i+1:], later) {
			continue
		}
		left--
		answer, err := reader.Do(ctx, mix.Op{Block: store.Head, Get: true, Key: op.Key})
		if err == nil {
			err = newWant(op, b.Number).check(answer.Entity)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ReadMixConfig configures clients that read by a mix, in a closed loop or at a
// rate.
type ReadMixConfig struct {
	pace.Config // Workers are the clients, each with separate snapshots; Rate is their total

	Mix mix.Reads

	// Head, if blocks are applied meanwhile, returns the last committed block.
	// Keys are drawn from the entities up to it.
	Head func() uint64

	// Held makes all clients read one snapshot of the head, which stays open.
	// Otherwise each read opens a snapshot.
	Held bool
}

// client is one reading client with its random draws.
type client struct {
	*mix.Reader
	draw mix.Stream
}

// open returns the clients, until they are released.
func (cfg *ReadMixConfig) open(ctx context.Context, ents *store.Entities) (clients []client, release func(), err error) {
	var held *store.Snapshot
	release = func() {}
	if cfg.Held {
		if held, err = ents.At(ctx, store.Head); err != nil {
			return nil, nil, err
		}
		release = func() { _ = held.Close() } // all was read
	}
	for range max(cfg.Workers, 1) {
		clients = append(clients, client{mix.NewReader(ents, held), cfg.Mix.Stream(mix.StreamOptions{HeadOnly: !ents.Temporal(), Head: cfg.Head})})
	}
	return clients, release, nil
}

// ReadMix reads and records the latency of each read by kind. A latency covers
// opening the snapshot, reading and closing the snapshot, but not comparing the
// answer, which follows. In an open loop it counts from the scheduled start.
// ReadMix fails with mix.ErrMismatch at the first wrong answer.
func ReadMix(ctx context.Context, ents *store.Entities, cfg ReadMixConfig) (*pace.Outcome, error) {
	clients, release, err := cfg.open(ctx, ents)
	if err != nil {
		return new(pace.Outcome), err
	}
	defer release()
	out, err := pace.Loop(ctx, cfg.Config, func(ctx context.Context, s *pace.Step) error {
		op := clients[s.Worker].draw(s.Rand)
		s.Kind = op.Kind
		answer, err := clients[s.Worker].Do(ctx, op)
		s.Stop()
		if err != nil {
			return fmt.Errorf("%s: %w", op.Kind, err)
		}
		answer.Keys = slices.Clone(answer.Keys) // which the reader uses again
		s.Check(func() error { return cfg.Mix.Check(op, answer) })
		return nil
	})
	if err != nil {
		return out, fmt.Errorf("read mix %s: %w", cfg.Mix.Name(), err)
	}
	return out, nil
}

// Combined runs commits and readers concurrently, from a common start. If one
// ends with an error, the other is stopped. Readers without a configured end
// stop with the commits.
func Combined(ctx context.Context, ents *store.Entities, writes CommitConfig, reads ReadMixConfig) (Result, *pace.Outcome, error) {
	group, ctx := errgroup.WithContext(ctx)
	var head atomic.Uint64
	var ended atomic.Bool
	head.Store(reads.Mix.Head())
	observe := writes.Observe
	writes.Mix, writes.Observe = reads.Mix, func(b *entity.Block, took time.Duration) {
		head.Store(b.Number)
		if observe != nil {
			observe(b, took)
		}
	}
	w := newBlockWriter(ents, writes)
	defer w.stop()
	w.Start = time.Now().Add(50 * time.Millisecond)
	reads.Start, reads.Head = w.Start, head.Load
	if reads.Duration == 0 && reads.N == 0 {
		reads.More = func() bool { return !ended.Load() }
	}
	var read *pace.Outcome
	group.Go(func() (err error) {
		read, err = ReadMix(ctx, ents, reads)
		return err
	})
	wrote, err := w.commit(ctx)
	ended.Store(true)
	group.Go(func() error { return err })
	err = group.Wait()
	return wrote, read, err
}

// EachRead returns the reads of a mix as single operations. It draws N reads,
// which repeat. Before the clock starts, all their answers are compared with
// the oracle; during the measurement only a cheap part of each answer is
// compared.
func EachRead(ctx context.Context, ents *store.Entities, cfg ReadMixConfig) (_ *Operations, err error) {
	type read struct {
		op   mix.Op
		want uint64 // expected number of entities
	}
	clients, release, err := cfg.open(ctx, ents)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			release()
		}
	}()
	drawn := make([][]read, len(clients))
	for i, c := range clients {
		random := rand.New(rand.NewPCG(cfg.Seed, uint64(i)))
		for range max(int(cfg.N)/len(clients), 1) {
			op := c.draw(random)
			answer, err := c.Do(ctx, op)
			if err == nil {
				err = cfg.Mix.Check(op, answer)
			}
			if err != nil {
				return nil, fmt.Errorf("read mix %s: %s: %w", cfg.Mix.Name(), op.Kind, err)
			}
			drawn[i] = append(drawn[i], read{op, answer.Count})
		}
	}
	at := make([]int, len(clients)) // of each client's reads
	return &Operations{Clients: len(clients), release: release, Do: func(ctx context.Context, client int) error {
		list := drawn[client]
		r := &list[at[client]%len(list)]
		at[client]++
		answer, err := clients[client].Do(ctx, r.op)
		if err == nil && answer.Count != r.want {
			err = mismatch("%s: %d entities, want %d", r.op.Kind, answer.Count, r.want)
		}
		return err
	}}, nil
}
