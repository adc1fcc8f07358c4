package node

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/mix"
	"github.com/varvedb/varve/bench/pace"
	"github.com/varvedb/varve/node/chain"
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
	pending      *asked // whose next page is to be read
	told         uint64 // the last block whose events it was told

	asked uint64 // the block that the node was at, at least, when it was called
}

func (l *load) newCaller(ctx context.Context, address string) (*caller, error) {
	c := &caller{load: l, scan: scanner{names: map[string]string{}}, told: l.applied.Load()}
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
		return c.query(c.pending)
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
	case at < 45, at < 55 && (c.told >= c.asked || !c.temporal):
		s.Kind, c.params = "block-number", nil
		return "eth_blockNumber", func() error { return c.isHead(c.scan.quantity()) }, nil
	case at < 55:
		s.Kind = "logs"
		return c.logs()
	}
	s.Kind = "query"
	return c.question(s.Rand)
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
			if f := &c.page.found[i]; op.Key == (entity.Key{}) {
				a.Keys = append(a.Keys, f.Key)
			} else if a.Entity = &f.Entity; f.fields != q.fields {
				return fmt.Errorf("fields %b, want %b", f.fields, q.fields)
			}
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

// question asks the application's next question.
func (c *caller) question(r *rand.Rand) (string, func() error, error) {
	q, err := c.app.ask(r, c.asked, c.temporal)
	if err != nil {
		return "", nil, err
	}
	return c.query(q)
}

// query calls for the first or next page of a question.
func (c *caller) query(q *asked) (string, func() error, error) {
	c.params = appendQuery(c.params[:0], &q.question)
	c.pending = nil
	return "arkiv_query", func() error {
		c.scan.page(&c.page)
		if c.scan.err != nil {
			return nil
		}
		if err := c.isOf(q.at, c.page.block); err != nil {
			return err
		}
		more, err := q.check(c.app, &c.page)
		if more {
			c.pending = q
		}
		return err
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

// events are those that SDKs subscribe to, with what they tell of.
var events = []struct {
	topic entity.Hash
	kind  entity.Kind
}{
	{chain.TopicCreated, entity.Create}, {chain.TopicUpdated, entity.Update}, {chain.TopicExpired, entity.Expire},
	{chain.TopicDeleted, entity.Delete}, {chain.TopicExtended, entity.Update}, {chain.TopicOwnerChanged, entity.Update},
}

var topics = func() (list []entity.Hash) {
	for _, e := range events {
		list = append(list, e.topic)
	}
	return list
}()

// atOnce is how many blocks a poll is for at most: a caller that is late leaves some out.
const atOnce = 20

// logs polls for the events since the last time.
func (c *caller) logs() (string, func() error, error) {
	from, to := c.told+1, c.asked
	if to >= from+atOnce {
		from = to - atOnce + 1
	}
	c.told = to
	c.params = appendLogs(c.params[:0], from, to, chain.Processor[:], topics)
	return "eth_getLogs", func() error { return c.checkLogs(from, to) }, nil
}

func (c *caller) checkLogs(from, to uint64) error {
	told := map[uint64][]event{}
	var wrong error
	c.scan.list(func() {
		l := c.log()
		made := c.block(l.block)
		switch {
		case c.scan.err != nil || wrong != nil:
		case l.block < from || l.block > to || l.hash != made.hash || l.removed:
			wrong = fmt.Errorf("a log of block %d with hash %s, removed %t", l.block, l.hash, l.removed)
		case l.event.kind != entity.Expire && !made.unsure[l.key]:
			told[l.block] = append(told[l.block], l.event)
		}
	})
	if wrong != nil || c.scan.err != nil {
		return wrong
	}
	for b := from; b <= to; b++ {
		slices.SortFunc(told[b], compareEvents)
		// An update that changes the owner too is two events.
		if got, want := slices.Compact(told[b]), c.block(b).events; !slices.Equal(got, want) {
			return fmt.Errorf("block %d: %d events %v, want %d %v", b, len(got), got, len(want), want)
		}
	}
	return nil
}

// logged is a log that was answered.
type logged struct {
	event
	block   uint64
	hash    entity.Hash
	removed bool
}

func (c *caller) log() (l logged) {
	s := &c.scan
	s.object(func(name []byte) {
		switch string(name) {
		case "topics":
			n := 0
			s.list(func() {
				var topic entity.Hash
				s.fixed(topic[:])
				if n == 0 {
					if i := slices.Index(topics, topic); i >= 0 {
						l.kind = events[i].kind
					} else {
						s.fail("an event that was asked for")
					}
				} else if n == 1 {
					l.key = entity.Key(topic)
				}
				n++
			})
		case "blockNumber":
			l.block = s.quantity()
		case "blockHash":
			s.fixed(l.hash[:])
		case "removed":
			l.removed = s.bool()
		default:
			s.text()
		}
	})
	return l
}
