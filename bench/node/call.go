package node

import (
	"context"
	"fmt"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/mix"
	"github.com/varvedb/varve/bench/pace"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
)

// caller is one client with its connection. What it calls next may depend on what it was
// answered.
type caller struct {
	*load
	client client
	reads  []mix.Reads // whose answers it checks
	draws  []mix.Stream

	body, params []byte
	scan         scanner
	page         page
	pending      *paged // whose next page is to be read

	asked uint64 // the block that the node was at, at least, when it was called
}

func (l *load) newCaller(ctx context.Context, address string) (*caller, error) {
	c := &caller{load: l, scan: scanner{names: map[string]string{}}}
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

// step makes a call and checks what is answered.
func (c *caller) step(ctx context.Context, s *pace.Step) error {
	c.asked = c.applied.Load()
	method, check, err := c.draw(s)
	if err != nil {
		return err
	}
	c.body = appendCall(c.body[:0], method, c.params)
	answer, err := c.client.call(ctx, c.body)
	s.Stop()
	if err != nil {
		return fmt.Errorf("%s: %w", c.body, err)
	}
	if c.Heard != nil {
		answer = c.Heard(s.Kind, answer)
	}
	c.scan.begin(answer)
	if err = check(); err == nil {
		err = c.scan.end()
	}
	if err != nil {
		return fmt.Errorf("%w: %s: %w", bench.ErrMismatch, c.body, err)
	}
	return nil
}

// draw decides what to call, leaves its parameters, and returns how to check the answer.
func (c *caller) draw(s *pace.Step) (method string, check func() error, err error) {
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
		s.Kind, c.params = "count", nil
		return "arkiv_getEntityCount", c.checkCount, nil
	case at < 40:
		s.Kind, c.params = "timing", nil
		return "arkiv_getBlockTiming", c.checkTiming, nil
	case at < 55:
		s.Kind, c.params = "block-number", nil
		return "eth_blockNumber", func() error { return c.isHead(c.scan.quantity()) }, nil
	}
	s.Kind = "query"
	op := c.draws[1](s.Rand)
	for op.Key != (entity.Key{}) { // of one entity
		op = c.draws[1](s.Rand)
	}
	return c.nextPage(&paged{question: question{text: op.Expr.String(), at: op.Block, limit: pageSizes[s.Rand.IntN(len(pageSizes))], fields: withKey}, op: op})
}

// isHead tells whether the node was at a block between when it was called and now.
func (c *caller) isHead(block uint64) error {
	if last := c.revealed.Load(); block < c.asked || block > last {
		return fmt.Errorf("of block %d, the node is between blocks %d and %d", block, c.asked, last)
	}
	return nil
}

// read calls for a read of a mix.
func (c *caller) read(of int, s *pace.Step) (string, func() error, error) {
	op := c.draws[of](s.Rand)
	s.Kind = op.Kind
	q := question{text: op.Expr.String(), at: op.Block, limit: op.Limit, fields: withKey}
	switch {
	case op.Get:
		op.Parts = store.Metadata | store.Attributes | store.Content
		q.fields = withAll
	case op.Key == (entity.Key{}): // its keys are all that is asked for
	case op.Parts&store.Attributes != 0:
		q.fields = withAll &^ withPayload
	case op.Parts&store.Content != 0:
		q.fields |= withPayload
	}
	c.params = appendQuery(c.params[:0], &q)
	return "arkiv_query", func() error {
		c.scan.page(&c.page)
		if c.scan.err != nil {
			return nil // it is told at the end
		}
		a := mix.Answer{Block: c.page.block, Count: uint64(len(c.page.found))}
		if err := c.isOf(op.Block, a.Block); err != nil {
			return err
		}
		for i := range c.page.found {
			f := &c.page.found[i]
			if f.fields != q.fields {
				return fmt.Errorf("fields %b, want %b", f.fields, q.fields)
			}
			a.Keys, a.Entity = append(a.Keys, f.Key), &f.Entity
		}
		return c.reads[of].Check(op, a)
	}, nil
}

// isOf tells whether an answer may be of a block, for a call at another one.
func (c *caller) isOf(at, block uint64) error {
	if at == store.Head {
		return c.isHead(block)
	}
	if at != block {
		return fmt.Errorf("of block %d, asked for was %d", block, at)
	}
	return nil
}

// pageSizes are those that clients ask for.
var pageSizes = []int{10, 25, 50}

// paged is a query that is read page by page.
type paged struct {
	question
	op   mix.Op
	keys []entity.Key // on the pages that were read
}

// nextPage calls for the first or next page of a query. Without history there is no other page of
// the same block.
func (c *caller) nextPage(q *paged) (string, func() error, error) {
	c.params, c.pending = appendQuery(c.params[:0], &q.question), nil
	return "arkiv_query", func() error {
		c.scan.page(&c.page)
		if c.scan.err != nil {
			return nil // it is told at the end
		}
		p := &c.page
		if err := c.isOf(q.at, p.block); err != nil {
			return err
		}
		for i := range p.found {
			if p.found[i].fields != q.fields {
				return fmt.Errorf("fields %b, want %b", p.found[i].fields, q.fields)
			}
			q.keys = append(q.keys, p.found[i].Key)
		}
		full := len(p.found) == q.limit
		if full != (p.cursor != "") { // a full page has one, also when nothing follows
			return fmt.Errorf("after %d entities on a page of %d the cursor is %q", len(p.found), q.limit, p.cursor)
		}
		if q.at, q.cursor = p.block, p.cursor; full && c.temporal && len(q.keys) < q.op.Limit {
			c.pending = q
			return nil
		}
		if q.op.Limit = 0; full {
			q.op.Limit = len(q.keys)
		}
		return c.reads[1].Check(q.op, mix.Answer{Block: p.block, Keys: q.keys, Count: uint64(len(q.keys))})
	}, nil
}

func (c *caller) checkCount() error {
	n := c.scan.number()
	last := c.revealed.Load()
	for b := c.asked; b <= last; b++ {
		if made := c.block(b); made != nil && made.visible == n {
			return nil
		}
	}
	return fmt.Errorf("%d entities, which are those of no block between %d and %d", n, c.asked, last)
}

func (c *caller) checkTiming() error {
	var block, time, duration uint64
	c.scan.object(func(name []byte) {
		switch string(name) {
		case "current_block":
			block = c.scan.number()
		case "current_block_time":
			time = c.scan.number()
		default:
			duration = c.scan.number()
		}
	})
	if err := c.isHead(block); err != nil {
		return err
	}
	if made := c.block(block); time != made.time || duration != 2 {
		return fmt.Errorf("block %d has time %d and takes %d s, want %d and 2 s", block, time, duration, made.time)
	}
	return nil
}
