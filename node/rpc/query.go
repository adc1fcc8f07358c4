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

// page is a query that is ready to run.
type page struct {
	expr    query.Expr
	options store.QueryOptions
	in      include
	at      uint64
	over    bool // it is asked to have more entities than it may: when it would, it is an error

	block   uint64       // that it is of
	next    store.Cursor // of the next page, or empty
	started bool
	bytes   int64 // sent
}

// endOfPage ends the result of a page of which parts were sent and the rest cannot be. What
// follows is the error, which clients look at before they look at a result.
const endOfPage = `]},`

// query serves arkiv_query. As Arkiv has it, a page that is full has a cursor, also when
// nothing follows: the JavaScript SDK goes on then, and fails without one. A page is never
// shorter than what was asked for, unless there is no more, for that SDK stops then. One
// that is too long to be held is sent in parts. Between them no view of the store is open,
// so that a client that is slow holds up nobody; a cursor leads from one part to the next.
func (h *Handler) query(ctx context.Context, c *call) error {
	p, err := h.readQuery(ctx, c)
	if err != nil {
		return err
	}
	c.out = append(c.out, `{"data":[`...)
	for whole := false; !whole; {
		if whole, err = h.appendPart(ctx, c, &p); err != nil {
			return err
		}
		if c.part != nil && len(c.out) > h.opts.Limits.Part {
			p.bytes += int64(len(c.out))
			if err := h.send(c.message); err != nil {
				return err
			}
		}
	}
	c.out = appendQuantity(append(c.out, `],"blockNumber":`...), p.block)
	if p.next != "" {
		c.out = append(append(append(c.out, `,"cursor":"`...), p.next...), '"')
	}
	c.out = append(c.out, '}')
	return nil
}

// readQuery reads the parameters.
func (h *Handler) readQuery(ctx context.Context, c *call) (p page, err error) {
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
	if number, ok := o.AtBlock.given(); ok {
		p.at = number
	} else if o.AtBlock != nil && o.AtBlock.word != "latest" {
		head, err := h.head(ctx)
		if err != nil {
			return p, err
		}
		p.at = o.AtBlock.at(head.Number)
	}
	limit := h.opts.Limits.Results
	if o.ResultsPerPage > 0 {
		most := quantity(h.opts.Limits.MaxResults)
		p.over = o.ResultsPerPage > most
		limit = int(min(o.ResultsPerPage, most+1))
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
	block, err := o.Cursor.Number()
	if err != nil {
		return p, &failure{code: CodeCursor, message: err.Error(), cause: err}
	}
	if p.at != store.Head && p.at != block && h.ents.Temporal() {
		return p, failf(CodeCursor, "the cursor is of block %d, asked for was block %d", block, p.at)
	}
	p.at = store.Head // the cursor knows its block, and the store finds it
	return p, nil
}

// appendPart adds entities until the page is whole, or there are as many bytes as a part
// has and they can be sent.
func (h *Handler) appendPart(ctx context.Context, c *call, p *page) (whole bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, h.opts.Limits.Time)
	defer cancel()
	if err := c.begin(ctx); err != nil {
		return false, err
	}
	snap, err := h.at(ctx, p.at)
	if err != nil {
		return false, err
	}
	defer snap.Close()
	if !p.started {
		if p.block = snap.Number(); p.options.After != "" && h.ents.Temporal() {
			if p.block, err = p.options.After.Number(); err != nil {
				return false, err
			}
		}
		if key, ok := byKey(p.expr); ok && p.options.After == "" {
			return true, appendByKey(ctx, c, snap, key, p)
		}
	}
	var last *entity.Entity
	n, options := 0, p.options
	for e, err := range snap.Query(ctx, p.expr, &options) {
		if err != nil {
			return false, asCursorFault(err, p.options.After)
		}
		if c.part != nil && n > 0 && len(c.out) > h.opts.Limits.Part {
			p.options.After, err = cursorAfter(snap, last, options)
			p.options.Limit, p.at = options.Limit-n, store.Head
			return false, err
		}
		if err := c.room(textBytes(e)); err != nil {
			return false, err
		}
		if p.started {
			c.out = append(c.out, ',')
		}
		c.out = appendEntity(c.out, e, &p.in)
		last, p.started = e, true
		n++
		if err := h.checkSize(c, p); err != nil {
			return false, err
		}
	}
	if n == options.Limit && p.over {
		return false, failf(CodeTooLarge, "more than %d entities match; ask for at most as many a page (resultsPerPage)", h.opts.Limits.MaxResults)
	}
	if n == options.Limit {
		p.next, err = cursorAfter(snap, last, options)
		return true, err
	}
	return true, ctx.Err()
}

// checkSize tells when a page has become too large.
func (h *Handler) checkSize(c *call, p *page) error {
	switch {
	case c.part == nil && len(c.out) > h.opts.Limits.Answer:
		return h.tooLarge()
	case p.bytes+int64(len(c.out)) > h.opts.Limits.Page:
		return failf(CodeTooLarge, "the page has more than %d bytes; ask for fewer entities a page (resultsPerPage)", h.opts.Limits.Page)
	}
	return nil
}

func appendByKey(ctx context.Context, c *call, snap *store.Snapshot, key entity.Key, p *page) error {
	e, err := snap.Get(ctx, key)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := c.room(textBytes(e)); err != nil {
		return err
	}
	c.out = appendEntity(c.out, e, &p.in)
	if p.options.Limit == 1 {
		p.next, err = cursorAfter(snap, e, p.options)
	}
	return err
}

// cursorAfter returns a cursor of what comes after an entity.
func cursorAfter(snap *store.Snapshot, e *entity.Entity, options store.QueryOptions) (store.Cursor, error) {
	options.Parts = 0 // the entity has what a cursor in this order needs
	return snap.Cursor(e, &options)
}

// textBytes is about what an entity has as JSON.
func textBytes(e *entity.Entity) int {
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
func byKey(expr query.Expr) (key entity.Key, ok bool) {
	compare, ok := expr.(query.Compare)
	if !ok || compare.Name != entity.AttrKey || compare.Op != query.Equal {
		return key, false
	}
	key, err := entity.ParseKey(compare.Value.Text)
	return key, err == nil
}
