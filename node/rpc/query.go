package rpc

import (
	"context"
	"errors"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
)

// queryOptions is the second parameter of arkiv_query.
type queryOptions struct {
	AtBlock        *blockTag    `json:"atBlock"`
	IncludeData    *include     `json:"includeData"`
	OrderBy        []orderBy    `json:"orderBy"`
	ResultsPerPage quantity     `json:"resultsPerPage"`
	Cursor         store.Cursor `json:"cursor"`
}

type orderBy struct {
	Name string `json:"name"`
	Type string `json:"type"`
	Desc bool   `json:"desc"`
}

// blockTag is a block's number, or one of the words that Ethereum has for the head. A store
// knows no blocks that are not final yet, or that are still to be made.
type blockTag struct {
	head     bool
	earliest bool
	number   uint64
}

// UnmarshalJSON implements json.Unmarshaler.
func (b *blockTag) UnmarshalJSON(text []byte) error {
	switch string(text) {
	case `"latest"`, `"pending"`, `"safe"`, `"finalized"`, `""`, "null":
		b.head = true
		return nil
	case `"earliest"`:
		b.earliest = true
		return nil
	}
	return (*quantity)(&b.number).UnmarshalJSON(text)
}

// page is a query that is ready to run.
type page struct {
	expr    query.Expr
	options store.QueryOptions
	in      include
	at      uint64
}

// query serves arkiv_query.
func (h *Handler) query(ctx context.Context, c *call) error {
	p, err := h.readQuery(c)
	if err != nil {
		return err
	}
	if err := c.begin(ctx); err != nil {
		return err
	}
	snap, err := h.at(ctx, p.at)
	if err != nil {
		return err
	}
	defer snap.Close()
	c.out = append(c.out, `{"data":[`...)
	last, err := h.appendPage(ctx, c, snap, p)
	if err != nil {
		return err
	}
	block := snap.Block()
	if p.options.After != "" && h.ents.Temporal() {
		if block, err = p.options.After.Block(); err != nil {
			return err
		}
	}
	c.out = appendQuantity(append(c.out, `],"blockNumber":`...), block)
	if last != nil {
		options := p.options
		options.Parts = 0 // the entity has what a cursor in this order needs
		cursor, err := snap.Cursor(last, &options)
		if err != nil {
			return err
		}
		c.out = append(append(append(c.out, `,"cursor":"`...), cursor...), '"')
	}
	c.out = append(c.out, '}')
	return nil
}

// readQuery reads the parameters.
func (h *Handler) readQuery(c *call) (p page, err error) {
	if err := c.atMost(2); err != nil {
		return p, err
	}
	var text string
	var o queryOptions
	if err := errors.Join(c.param(0, "the query", false, &text), c.param(1, "the options", true, &o)); err != nil {
		return p, err
	}
	if p.expr, err = parse(text); err != nil {
		return p, err
	}
	p.in = usual
	if o.IncludeData != nil {
		p.in = *o.IncludeData
	}
	p.at = store.Head
	if o.AtBlock != nil && !o.AtBlock.head {
		p.at = o.AtBlock.number
	}
	limit := h.opts.Limits.Results
	if o.ResultsPerPage > 0 && o.ResultsPerPage < quantity(limit) {
		limit = int(o.ResultsPerPage)
	}
	p.options = store.QueryOptions{Limit: limit, After: o.Cursor, Parts: store.Metadata}
	if p.in.Attributes {
		p.options.Parts |= store.Attributes
	}
	if p.in.Payload {
		p.options.Parts |= store.Content
	}
	for _, by := range o.OrderBy {
		order := store.Order{Name: by.Name, Desc: by.Desc}
		switch by.Type {
		case "string", "str":
			order.Kind = entity.String
		case "numeric", "number", "int":
			order.Kind = entity.Numeric
		case "":
		default:
			return p, failf(CodeParams, "sorted by %q of type %q: want string or numeric", clip(by.Name), clip(by.Type))
		}
		if _, synthetic := entity.SyntheticKind(by.Name); !synthetic {
			p.options.Parts |= store.Attributes // a cursor is made of them
		}
		p.options.Order = append(p.options.Order, order)
	}
	if o.Cursor == "" {
		return p, nil
	}
	block, err := o.Cursor.Block()
	if err != nil {
		return p, &failure{code: CodeCursor, message: err.Error(), cause: err}
	}
	if p.at != store.Head && p.at != block && h.ents.Temporal() {
		return p, failf(CodeCursor, "the cursor is of block %d, asked for was block %d", block, p.at)
	}
	p.at = store.Head // the cursor knows its block, and the store finds it
	return p, nil
}

// appendPage adds the entities of a page, and returns the last of them when there are more.
func (h *Handler) appendPage(ctx context.Context, c *call, snap *store.Snapshot, p page) (last *store.Entity, err error) {
	if key, ok := byKey(p.expr); ok && p.options.After == "" {
		e, err := snap.Get(ctx, key)
		if errors.Is(err, store.ErrNotFound) {
			return nil, nil
		}
		if err == nil {
			err = c.room(textBytes(e))
		}
		if err == nil {
			c.out = appendEntity(c.out, e, &p.in)
		}
		return nil, err
	}
	start, n, limit := len(c.out), 0, p.options.Limit
	p.options.Limit++ // whether there are more
	for e, err := range snap.Query(ctx, p.expr, &p.options) {
		if err != nil {
			return nil, asCursorFault(err, p.options.After)
		}
		if n == limit || n > 0 && len(c.out)-start > h.opts.Limits.Page {
			return last, nil
		}
		if err := c.room(textBytes(e)); err != nil {
			return nil, err
		}
		if n > 0 {
			c.out = append(c.out, ',')
		}
		c.out = appendEntity(c.out, e, &p.in)
		last = e
		n++
	}
	return nil, ctx.Err()
}

// textBytes is about what an entity has as JSON.
func textBytes(e *store.Entity) int {
	n := 1024 + 2*len(e.Content)
	for name, value := range e.StringAttributes {
		n += 32 + len(name) + len(value)
	}
	return n + 64*len(e.NumericAttributes)
}

// asCursorFault tells what is wrong with a cursor from what is wrong with a query, which
// was checked before.
func asCursorFault(err error, cursor store.Cursor) error {
	if cursor != "" && errors.Is(err, store.ErrInvalid) {
		return &failure{code: CodeCursor, message: err.Error(), cause: err}
	}
	return err
}

// byKey tells whether a query asks for one entity, which is found faster so.
func byKey(expr query.Expr) (key store.Key, ok bool) {
	compare, ok := expr.(query.Compare)
	if !ok || compare.Name != entity.AttrKey || compare.Op != query.Equal {
		return key, false
	}
	key, err := entity.ParseKey(compare.Value.Text)
	return key, err == nil
}
