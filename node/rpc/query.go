package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
)

// queryOptions is the second parameter of arkiv_query.
type queryOptions struct {
	AtBlock        *blockTag    `json:"atBlock"`
	IncludeData    *include     `json:"includeData"`
	OrderBy        orders       `json:"orderBy"`
	ResultsPerPage quantity     `json:"resultsPerPage"`
	Cursor         store.Cursor `json:"cursor"`
}

// UnmarshalJSON implements json.Unmarshaler. An unknown option is refused,
// because a misspelt one would silently lead to another block or order.
func (o *queryOptions) UnmarshalJSON(text []byte) error {
	type plain queryOptions
	return strictly(text, (*plain)(o))
}

// strictly decodes an object and refuses unknown members.
func strictly(text []byte, dst any) error {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	return dec.Decode(dst)
}

// orders is the sort order of a page.
type orders []orderBy

// maxOrders bounds the list during decoding; the store accepts fewer.
const maxOrders = 64

// UnmarshalJSON implements json.Unmarshaler.
func (o *orders) UnmarshalJSON(text []byte) (err error) {
	*o, err = readList[orderBy](text, maxOrders)
	return err
}

type orderBy struct {
	Name string `json:"name"`
	Type string `json:"type"`
	Desc bool   `json:"desc"`
}

// UnmarshalJSON implements json.Unmarshaler.
func (by *orderBy) UnmarshalJSON(text []byte) error {
	type plain orderBy
	return strictly(text, (*plain)(by))
}

// page is a decoded query.
type page struct {
	expr    query.Expr
	options store.QueryOptions
	in      include
	at      uint64
	block   uint64       // the block of the page
	next    store.Cursor // of the next page, or empty
	started bool
	bytes   int64 // bytes sent so far
}

// query serves arkiv_query. As in Arkiv, a full page has a cursor, even if it
// is the last, because the JavaScript SDK asks for the next page and fails
// without one. A page has as many entities as were asked for, up to
// Limits.MaxResults and Limits.Page, unless there are no more. A page that is
// too long for memory is sent in parts. Between the parts no view of the store
// is open, so that a slow client does not block others; each part continues
// from a cursor.
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

// readQuery decodes and checks the parameters.
func (h *Handler) readQuery(ctx context.Context, c *call) (p page, err error) {
	// Decode them.
	if n := len(c.params); n > 2 {
		return p, failf(CodeParams, "%d parameters, at most %d are taken", n, 2)
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

	// Find the block.
	p.at = store.Head
	if number, ok := o.AtBlock.given(); ok {
		p.at = number
	} else if o.AtBlock != nil && o.AtBlock.word != "latest" {
		snap, err := h.ents.At(ctx, store.Head)
		if err != nil {
			return p, err
		}
		p.at, err = o.AtBlock.at(ctx, snap)
		if err = errors.Join(err, snap.Close()); err != nil {
			return p, err
		}
	}

	// Choose the length of the page, the parts of entities, and the order.
	limit := h.opts.Limits.Results
	if o.ResultsPerPage > 0 {
		limit = int(min(o.ResultsPerPage, quantity(h.opts.Limits.MaxResults)))
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
			p.options.Parts |= store.Attributes // a cursor is made from them
		}
		p.options.Order = append(p.options.Order, order)
	}

	// A cursor names its block, which must be the requested one if there is one.
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
	p.at = store.Head // the store finds the block from the cursor
	return p, nil
}

// appendPart appends entities until the page is complete, or, if parts can be
// sent, until the part is full.
func (h *Handler) appendPart(ctx context.Context, c *call, p *page) (whole bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, h.opts.Limits.Time)
	defer cancel()
	if c.full {
		return false, c.tooLarge()
	}
	// Reserve the memory of the answer before asking the store.
	if err := c.hold.Take(ctx, c.size+int64(len(c.out))+c.usual); err != nil {
		return false, err
	}

	// Open a view, with the entity if the query asks for one by its key.
	var keys []entity.Key
	key, single := byKey(p.expr)
	if single = single && !p.started && p.options.After == ""; single {
		keys = append(keys, key)
	}
	snap, err := h.at(ctx, p.at, keys...)
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
	}
	if single {
		return true, appendByKey(ctx, c, snap, key, p)
	}

	// Append entities. The next part or page begins after the last one.
	var last *entity.Entity
	n, full, options := 0, false, p.options
	for e, err := range snap.Query(ctx, p.expr, &options) {
		if err != nil {
			// The query was checked before, so another invalid input is the
			// cursor.
			if p.options.After != "" && errors.Is(err, store.ErrInvalid) {
				err = &failure{code: CodeCursor, message: err.Error(), cause: err}
			}
			return false, err
		}
		// Refuse an answer that will be too long before encoding it.
		if c.part == nil && len(c.out)+2*len(e.Content) > c.most {
			return false, c.tooLarge()
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
		if c.part == nil && len(c.out) > c.most {
			return false, c.tooLarge()
		}
		if full = p.bytes+int64(len(c.out)) > h.opts.Limits.Page; full {
			break
		}
	}
	if n == options.Limit || full {
		p.next, err = cursorAfter(snap, last, options)
		return true, err
	}
	return true, ctx.Err()
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

// cursorAfter returns a cursor that continues after an entity.
func cursorAfter(snap *store.Snapshot, e *entity.Entity, options store.QueryOptions) (store.Cursor, error) {
	options.Parts = 0 // the entity has all fields that a cursor in this order needs
	return snap.Cursor(e, &options)
}

// textBytes estimates the length of an entity as JSON.
func textBytes(e *entity.Entity) int {
	n := 1024 + 2*len(e.Content)
	for name, value := range e.StringAttributes {
		n += 32 + len(name) + len(value)
	}
	return n + 64*len(e.NumericAttributes)
}

// byKey reports whether a query asks for one entity by its key; there is a
// faster path for it.
func byKey(expr query.Expr) (key entity.Key, ok bool) {
	compare, ok := expr.(query.Compare)
	if !ok || compare.Name != entity.AttrKey || compare.Op != query.Equal {
		return key, false
	}
	key, err := entity.ParseKey(compare.Value.Text)
	return key, err == nil
}
