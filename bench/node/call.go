package node

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/mix"
	"github.com/varvedb/varve/bench/pace"
	"github.com/varvedb/varve/node/chain"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
)

// caller is one client with its connection. Its next call may depend on the
// last answer.
type caller struct {
	*load
	client  client
	reads   []mix.Reads // mixes that check its answers
	draws   []mix.Stream
	pending *paged // query whose next page is to be read

	asked uint64 // the block that the node had applied at the time of the call
}

func (l *load) newCaller(ctx context.Context, address string) (*caller, error) {
	c := &caller{load: l}
	names := []string{l.Calls}
	if l.Calls == SDK {
		names = []string{mix.ByKey, mix.A}
	}
	for _, name := range names {
		reads, err := mix.New(name, l.oracle)
		if err != nil {
			return nil, err
		}
		c.reads = append(c.reads, reads)
		c.draws = append(c.draws, reads.Stream(mix.StreamOptions{HeadOnly: !l.temporal, Head: l.applied.Load}))
	}
	var err error
	c.client, err = dial(ctx, l.Protocol, address)
	return c, err
}

// call is a call and the function that checks its answer.
type call struct {
	method string
	params []any
	check  func(answer []byte) error
}

// step makes a call and checks the answer.
func (c *caller) step(ctx context.Context, s *pace.Step) error {
	c.asked = c.applied.Load()
	call := c.draw(s)
	// Calls on a connection come one after another, so all have the same id.
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": call.method, "params": call.params})
	if err != nil {
		return err
	}
	answer, err := c.client.call(ctx, body)
	s.Stop()
	if err != nil {
		return fmt.Errorf("%s: %w", body, err)
	}
	if c.Heard != nil {
		answer = c.Heard(s.Kind, answer)
	}
	if err := call.check(answer); err != nil {
		return fmt.Errorf("%w: %s: %w", bench.ErrMismatch, body, err)
	}
	return nil
}

// draw chooses the next call.
func (c *caller) draw(s *pace.Step) call {
	if c.Calls != SDK {
		return c.read(0, s)
	}
	if c.pending != nil {
		s.Kind = "next-page"
		return c.nextPage(c.pending)
	}
	switch at := s.Rand.IntN(100); {
	case at < 20:
		return c.read(0, s)
	case at < 30:
		return c.read(1, s)
	case at < 35:
		s.Kind = "count"
		return call{method: "arkiv_getEntityCount", check: c.checkCount}
	case at < 40:
		s.Kind = "timing"
		return call{method: "arkiv_getBlockTiming", check: c.checkTiming}
	case at < 55:
		s.Kind = "block-number"
		return call{method: "eth_blockNumber", check: func(answer []byte) error {
			block, err := result[chain.Quantity](answer)
			if err == nil {
				err = c.isHead(uint64(block))
			}
			return err
		}}
	}
	s.Kind = "query"
	op := c.draws[1](s.Rand)
	for op.Key != (entity.Key{}) { // of one entity
		op = c.draws[1](s.Rand)
	}
	return c.nextPage(&paged{question: question{text: op.Expr.String(), at: op.Block, limit: pageSizes[s.Rand.IntN(len(pageSizes))]}, op: op})
}

// isHead checks that a block was the node's head at some time between the call
// and now.
func (c *caller) isHead(block uint64) error {
	if last := c.revealed.Load(); block < c.asked || block > last {
		return fmt.Errorf("of block %d, the node is between blocks %d and %d", block, c.asked, last)
	}
	return nil
}

// query calls arkiv_query for a page. The page is passed to check if its block
// is right and it has the requested fields.
func (c *caller) query(q *question, check func(p *page) error) call {
	at, parts := q.at, q.parts
	return call{"arkiv_query", q.params(), func(answer []byte) error {
		p, err := result[page](answer)
		if err == nil && at == store.Head {
			err = c.isHead(uint64(p.Block))
		} else if err == nil && uint64(p.Block) != at {
			err = fmt.Errorf("of block %d, asked for was %d", p.Block, at)
		}
		for i := range p.Found {
			f := &p.Found[i]
			if got := f.parts(); err == nil && (f.Key == nil || got != parts) {
				err = fmt.Errorf("parts %b, want %b and the key", got, parts)
			}
		}
		if err == nil {
			err = check(&p)
		}
		return err
	}}
}

// read calls for one read of a mix.
func (c *caller) read(of int, s *pace.Step) call {
	op := c.draws[of](s.Rand)
	s.Kind = op.Kind
	q := question{text: op.Expr.String(), at: op.Block, limit: op.Limit}
	switch {
	case op.Get:
		op.Parts = everything
		q.parts = everything
	case op.Key == (entity.Key{}): // the query asks for keys only
	case op.Parts&store.Attributes != 0:
		q.parts = everything &^ store.Content
	case op.Parts&store.Content != 0:
		q.parts = store.Content
	}
	return c.query(&q, func(p *page) error {
		a := mix.Answer{Block: uint64(p.Block), Count: uint64(len(p.Found))}
		for i := range p.Found {
			e := p.Found[i].entity()
			a.Keys, a.Entity = append(a.Keys, e.Key), &e
		}
		return c.reads[of].Check(op, a)
	})
}

// pageSizes are the page sizes that clients ask for.
var pageSizes = []int{10, 25, 50}

// paged is a query that is read page by page.
type paged struct {
	question
	op   mix.Op
	keys []entity.Key // on the pages read so far
}

// nextPage calls for the first or next page of a query. Without history only
// the first page is read, because a later page could be of another block.
func (c *caller) nextPage(q *paged) call {
	c.pending = nil
	return c.query(&q.question, func(p *page) error {
		for i := range p.Found {
			q.keys = append(q.keys, entity.Key(*p.Found[i].Key)) // query has checked that it is not nil
		}
		full := len(p.Found) == q.limit
		if full != (p.Cursor != "") { // a full page always has a cursor, as in Arkiv
			return fmt.Errorf("after %d entities on a page of %d the cursor is %q", len(p.Found), q.limit, p.Cursor)
		}
		if q.at, q.cursor = uint64(p.Block), p.Cursor; full && c.temporal && len(q.keys) < q.op.Limit {
			c.pending = q
			return nil
		}
		if q.op.Limit = 0; full {
			q.op.Limit = len(q.keys)
		}
		return c.reads[1].Check(q.op, mix.Answer{Block: q.at, Keys: q.keys, Count: uint64(len(q.keys))})
	})
}

func (c *caller) checkCount(answer []byte) error {
	n, err := result[uint64](answer)
	if err != nil {
		return err
	}
	last := c.revealed.Load()
	for b := c.asked; b <= last; b++ {
		if made := c.block(b); made != nil && made.visible == n {
			return nil
		}
	}
	return fmt.Errorf("%d entities, which are those of no block between %d and %d", n, c.asked, last)
}

func (c *caller) checkTiming(answer []byte) error {
	t, err := result[timing](answer)
	if err == nil {
		err = c.isHead(t.Block)
	}
	if err != nil {
		return err
	}
	if made := c.block(t.Block); t.Time != made.time || t.Duration != 2 {
		return fmt.Errorf("block %d has time %d and takes %d s, want %d and 2 s", t.Block, t.Time, t.Duration, made.time)
	}
	return nil
}
