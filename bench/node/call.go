package node

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
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

	pending *asked // whose next page is to be read
	told    uint64 // the last block whose events it was told

	asked uint64 // the block that the node was at, at least, when it was called
}

func (l *load) newCaller(ctx context.Context, address string) (*caller, error) {
	c := &caller{load: l, told: l.applied.Load()}
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
	r, err := c.draw(s)
	if err != nil {
		return err
	}
	body, err := r.body()
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
	if err := r.check(answer); err != nil {
		return fmt.Errorf("%w: %s: %w", bench.ErrMismatch, body, err)
	}
	return nil
}

// draw decides what to call.
func (c *caller) draw(s *pace.Step) (request, error) {
	if c.Calls != SDK {
		return c.read(0, s), nil
	}
	if c.pending != nil {
		s.Kind = "next-page"
		return c.query(c.pending), nil
	}
	switch at := s.Rand.IntN(100); {
	case at < 20:
		return c.read(0, s), nil
	case at < 30:
		return c.read(1, s), nil
	case at < 35:
		s.Kind = "count"
		return request{"arkiv_getEntityCount", nil, checked(c.checkCount)}, nil
	case at < 40:
		s.Kind = "timing"
		return request{"arkiv_getBlockTiming", nil, checked(c.checkTiming)}, nil
	case at < 45, at < 55 && (c.told >= c.asked || !c.temporal):
		s.Kind = "block-number"
		return request{"eth_blockNumber", nil, checked(func(n *chain.Quantity) error { return c.isHead(uint64(*n)) })}, nil
	case at < 55:
		s.Kind = "logs"
		return c.logs(), nil
	}
	s.Kind = "query"
	q, err := c.app.ask(s.Rand, c.asked, c.temporal)
	if err != nil {
		return request{}, err
	}
	return c.query(q), nil
}

// isHead tells whether the node was at a block between when it was called and now.
func (c *caller) isHead(block uint64) error {
	if last := c.revealed.Load(); block < c.asked || block > last {
		return fmt.Errorf("of block %d, the node is between blocks %d and %d", block, c.asked, last)
	}
	return nil
}

// read calls for a read of a mix.
func (c *caller) read(of int, s *pace.Step) request {
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
	return request{"arkiv_query", q.params(), checked(func(p *page) error {
		a := mix.Answer{Block: uint64(p.BlockNumber), Count: uint64(len(p.Data))}
		if err := c.isOf(op.Block, a.Block); err != nil {
			return err
		}
		for i := range p.Data {
			e := &p.Data[i]
			if has := e.fields(); has != q.fields {
				return fmt.Errorf("fields %b, want %b", has, q.fields)
			}
			if op.Key == (entity.Key{}) {
				a.Keys = append(a.Keys, entity.Key(*e.Key))
			} else {
				a.Entity = e.entity()
			}
		}
		return c.reads[of].Check(op, a)
	})}
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

// query calls for the first or next page of a question of the application.
func (c *caller) query(q *asked) request {
	c.pending = nil
	return request{"arkiv_query", q.params(), checked(func(p *page) error {
		if err := c.isOf(q.at, uint64(p.BlockNumber)); err != nil {
			return err
		}
		more, err := q.check(c.app, p)
		if more {
			c.pending = q
		}
		return err
	})}
}

func (c *caller) checkCount(n *uint64) error {
	last := c.revealed.Load()
	for b := c.asked; b <= last; b++ {
		if made := c.block(b); made != nil && made.visible == *n {
			return nil
		}
	}
	return fmt.Errorf("%d entities, which are those of no block between %d and %d", *n, c.asked, last)
}

// timing is an answer to arkiv_getBlockTiming.
type timing struct {
	Block    uint64 `json:"current_block"`
	Time     uint64 `json:"current_block_time"`
	Duration uint64
}

func (c *caller) checkTiming(t *timing) error {
	if err := c.isHead(t.Block); err != nil {
		return err
	}
	if want := (timing{t.Block, c.block(t.Block).time, 2}); *t != want {
		return fmt.Errorf("%+v, want %+v", *t, want)
	}
	return nil
}

// events are those that SDKs subscribe to, with what they tell of.
var events = map[entity.Hash]entity.Kind{
	chain.TopicCreated: entity.Create, chain.TopicUpdated: entity.Update, chain.TopicExpired: entity.Expire,
	chain.TopicDeleted: entity.Delete, chain.TopicExtended: entity.Update, chain.TopicOwnerChanged: entity.Update,
}

// logged is a log that was answered.
type logged struct {
	Topics      []entity.Hash
	BlockNumber chain.Quantity
	BlockHash   entity.Hash
	Removed     bool

	Address, Data, TransactionHash, TransactionIndex, LogIndex json.RawMessage
}

// atOnce is how many blocks a poll is for at most: a caller that is late leaves some out.
const atOnce = 20

// logs polls for the events since the last time.
func (c *caller) logs() request {
	from, to := c.told+1, c.asked
	if to >= from+atOnce {
		from = to - atOnce + 1
	}
	c.told = to
	filter := map[string]any{
		"fromBlock": chain.Quantity(from), "toBlock": chain.Quantity(to),
		"address": chain.Processor, "topics": [][]entity.Hash{slices.Collect(maps.Keys(events))},
	}
	return request{"eth_getLogs", []any{filter}, checked(func(list *[]logged) error { return c.checkLogs(*list, from, to) })}
}

func (c *caller) checkLogs(list []logged, from, to uint64) error {
	told := map[uint64][]event{}
	for _, l := range list {
		n := uint64(l.BlockNumber)
		if n < from || n > to || l.BlockHash != c.block(n).hash || l.Removed || len(l.Topics) < 2 || events[l.Topics[0]] == 0 {
			return fmt.Errorf("a log %+v", l)
		}
		if e := (event{events[l.Topics[0]], entity.Key(l.Topics[1])}); e.kind != entity.Expire && !c.block(n).unsure[e.key] {
			told[n] = append(told[n], e)
		}
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
