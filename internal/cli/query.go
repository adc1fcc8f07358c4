package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/varvedb/varve/internal/jsonuint"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
)

// queryCmd prints matching entities.
type queryCmd struct {
	URL     string   `arg:"" store:"" help:"Store to read."`
	Expr    string   `arg:"" help:"Query, such as 'type = \"node\" && cpu >= 8'; '*' matches everything."`
	At      *uint64  `any:"" help:"Block to read at; the head when not given."`
	OrderBy []string `help:"Attribute to sort by: NAME, NAME:number or NAME:string, with :desc or :asc after it. Given again, it orders entities that are equal by the first. By default the newest creation comes first." placeholder:"NAME" sep:"none"`
	Desc    bool     `help:"Sort descending by attributes without :asc."`
	Limit   int      `min:"0" max:"1000000000000" help:"Most entities to print; 0 for all." default:"0"`
	Count   bool     `help:"Print only how many match." xor:"form"`
	Keys    bool     `help:"Print only the keys, lower-case 0x hex, one a line." xor:"form"`
	JSON    bool     `help:"Print one JSON object a line." xor:"form"`
}

// Run queries.
func (c *queryCmd) Run(e *env) error {
	expr, err := query.Parse(c.Expr)
	if err != nil {
		return usageError{err}
	}
	opts, err := c.options()
	if err != nil {
		return usageError{err}
	}
	at := uint64(store.Head)
	if c.At != nil {
		at = *c.At
	}
	return e.withSnapshot(c.URL, at, func(snap *store.Snapshot) error {
		if c.Count {
			n, err := snap.Count(e.ctx, expr)
			if err == nil {
				fmt.Fprintln(e.stdout, n)
			}
			return err
		}
		if c.Keys {
			opts.Parts = store.Metadata
		}
		show, end := c.printer(e.stdout, snap.Number())
		for ent, err := range snap.Query(e.ctx, expr, opts) {
			if err == nil {
				err = show(ent)
			}
			if err != nil {
				return errors.Join(err, end(false))
			}
		}
		return end(true)
	})
}

func (c *queryCmd) options() (*store.QueryOptions, error) {
	opts := &store.QueryOptions{Limit: c.Limit}
	if c.Desc && len(c.OrderBy) == 0 {
		return nil, errors.New("--desc needs --order-by")
	}
	for _, text := range c.OrderBy {
		order, err := parseOrder(text, c.Desc)
		if err != nil {
			return nil, err
		}
		opts.Order = append(opts.Order, order)
	}
	return opts, nil
}

// parseOrder parses an attribute to sort by. Kind and direction are suffixes,
// so that names may contain colons.
func parseOrder(text string, desc bool) (store.Order, error) {
	o := store.Order{Name: text, Desc: desc}
	if name, ok := strings.CutSuffix(text, ":desc"); ok {
		o.Name, o.Desc = name, true
	} else if name, ok := strings.CutSuffix(text, ":asc"); ok {
		o.Name, o.Desc = name, false
	}
	if name, ok := strings.CutSuffix(o.Name, ":string"); ok {
		o.Name, o.Kind = name, entity.String
	} else if name, ok := strings.CutSuffix(o.Name, ":number"); ok {
		o.Name, o.Kind = name, entity.Numeric
	} else if _, synthetic := entity.SyntheticKind(o.Name); !synthetic {
		return o, fmt.Errorf("--order-by %s: say whether it is a number or a string: %s:number or %s:string", text, o.Name, o.Name)
	}
	return o, nil
}

// printer returns a function that prints an entity in the chosen format, and a
// function to call after the last one, with whether there are more.
func (c *queryCmd) printer(to io.Writer, block uint64) (show func(*entity.Entity) error, end func(all bool) error) {
	none := func(bool) error { return nil }
	switch {
	case c.Keys:
		return func(ent *entity.Entity) error { _, err := fmt.Fprintln(to, ent.Key); return err }, none
	case c.JSON:
		enc := json.NewEncoder(to)
		return func(ent *entity.Entity) error { return enc.Encode(jsonOf(ent)) }, none
	}
	t := newTable(to, "KEY", "OWNER", "CREATED", "CHANGED", "EXPIRES", "BYTES", "ATTRIBUTES")
	show = func(ent *entity.Entity) error {
		return t.row(ent.Key, ent.Owner, ent.CreatedAtBlock(), ent.LastModifiedAtBlock, expiration(ent.Expiration), len(ent.Content), attributes(ent))
	}
	return show, func(all bool) error {
		err := t.w.Flush()
		if all && err == nil {
			_, err = fmt.Fprintf(to, "%d entities at block %d\n", t.rows, block)
		}
		return err
	}
}

// entityJSON is an entity in JSON output.
type entityJSON struct {
	Key         string            `json:"key"`
	Owner       string            `json:"owner"`
	Creator     string            `json:"creator"`
	ContentType string            `json:"content_type"`
	Payload     []byte            `json:"payload"` // base64
	Strings     map[string]string `json:"string_attributes"`

	// Numbers too large for some JSON clients become strings.
	Numbers      map[string]jsonuint.Uint `json:"numeric_attributes"`
	Sequence     jsonuint.Uint            `json:"sequence"`
	CreatedAt    jsonuint.Uint            `json:"created_at_block"`
	LastModified jsonuint.Uint            `json:"last_modified_at_block"`
	Expiration   jsonuint.Expiration      `json:"expiration"` // null for never
}

// jsonOf converts an entity; nil remains nil.
func jsonOf(ent *entity.Entity) *entityJSON {
	if ent == nil {
		return nil
	}
	return &entityJSON{
		Key: ent.Key.String(), Owner: ent.Owner.String(), Creator: ent.Creator.String(),
		ContentType: ent.ContentType, Payload: ent.Content,
		Strings: ent.StringAttributes, Numbers: jsonuint.FromMap(ent.NumericAttributes),
		Sequence: jsonuint.Uint(ent.Sequence), CreatedAt: jsonuint.Uint(ent.CreatedAtBlock()),
		LastModified: jsonuint.Uint(ent.LastModifiedAtBlock), Expiration: jsonuint.Expiration(ent.Expiration),
	}
}

func expiration(block uint64) string {
	if block == entity.MaxBlock {
		return "never"
	}
	return strconv.FormatUint(block, 10)
}

// attributes formats an entity's attributes as the query language writes them.
func attributes(e *entity.Entity) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(e.StringAttributes)) {
		list = append(list, query.Compare{Name: name, Op: query.Equal, Value: query.Text(e.StringAttributes[name])}.String())
	}
	for _, name := range slices.Sorted(maps.Keys(e.NumericAttributes)) {
		list = append(list, query.Compare{Name: name, Op: query.Equal, Value: query.Number(e.NumericAttributes[name])}.String())
	}
	return strings.Join(list, ", ")
}
