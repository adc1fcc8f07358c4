package feed

import (
	"errors"
	"fmt"
	"strings"

	"github.com/varvedb/varve/store/entity"
)

// row has the columns of table payloads that both schemas share.
type row struct {
	key, payload, contentType []byte
	strings, numbers          []byte // JSON
}

// versionRow is a row of sqlite-store, with the to_block of the version before
// it.
type versionRow struct {
	row
	from, to, previousTo int64
}

// entity checks the row and converts it.
func (r *versionRow) entity(last uint64) (*entity.Entity, error) {
	switch {
	case len(r.key) != len(entity.Key{}):
		return nil, r.keyError()
	case r.from < 0 || r.to < r.from:
		return nil, fmt.Errorf("blocks %d to %d are not a span", r.from, r.to)
	case uint64(r.from) > last:
		return nil, fmt.Errorf("it is above the last block %d", last)
	case r.previousTo > r.from:
		return nil, fmt.Errorf("the version before it ends at block %d, so they overlap", r.previousTo)
	}
	e, err := r.read(false)
	if err != nil {
		return nil, err
	}
	e.LastModifiedAtBlock = uint64(r.from)
	if err := synthetic(e); err != nil {
		return nil, err
	}
	if uint64(r.to) > e.Expiration {
		return nil, fmt.Errorf("to_block %d is above attribute %s %d", r.to, entity.AttrExpiration, e.Expiration)
	}
	return e, validate(e)
}

func (r *row) keyError() error {
	return fmt.Errorf("the key has %d bytes, want %d", len(r.key), len(entity.Key{}))
}

// read converts the row into an entity, with all attributes as user attributes.
// State reports that the row is of sqlite-bitmap-store.
func (r *row) read(state bool) (e *entity.Entity, err error) {
	e = &entity.Entity{Key: entity.Key(r.key), ContentType: string(r.contentType)}
	if len(r.payload) > 0 {
		e.Content = r.payload
	}
	if e.StringAttributes, err = column[string](r.strings, state); err != nil {
		return nil, fmt.Errorf("column string_attributes: %w", err)
	}
	if e.NumericAttributes, err = column[uint64](r.numbers, state); err != nil {
		return nil, fmt.Errorf("column numeric_attributes: %w", err)
	}
	return e, nil
}

// column reads a column of attributes, which sqlite-bitmap-store wraps in
// another object.
func column[V any](text []byte, state bool) (m map[string]V, err error) {
	if !state {
		err = unmarshal(text, &m)
		return m, err
	}
	var in struct{ Values map[string]V }
	err = unmarshal(text, &in)
	return in.Values, err
}

// synthetic moves the attributes that Arkiv stores next to the user's into
// fields, and checks that duplicates agree.
func synthetic(e *entity.Entity) (err error) {
	text := func(name string) string { return take(e.StringAttributes, name, &err) }
	number := func(name string) uint64 { return take(e.NumericAttributes, name, &err) }

	key, owner, creator := text(entity.AttrKey), text(entity.AttrOwner), text(entity.AttrCreator)
	e.Sequence = number(entity.AttrSequence)
	e.Expiration = min(number(entity.AttrExpiration), entity.MaxBlock)
	block, tx, op := number(entity.AttrCreatedAtBlock), number(entity.AttrTxIndex), number(entity.AttrOpIndex)
	if err != nil {
		return err
	}
	if e.Owner, err = entity.ParseAddress(owner); err != nil {
		return fmt.Errorf("attribute %s: %w", entity.AttrOwner, err)
	}
	if e.Creator, err = entity.ParseAddress(creator); err != nil {
		return fmt.Errorf("attribute %s: %w", entity.AttrCreator, err)
	}
	switch {
	case !strings.EqualFold(key, e.Key.String()):
		return fmt.Errorf("attribute %s is %q", entity.AttrKey, key)
	case block != e.CreatedAtBlock() || tx != e.TxIndex() || op != e.OpIndex():
		return fmt.Errorf("attribute %s %d does not agree with block %d, tx %d, op %d", entity.AttrSequence, e.Sequence, block, tx, op)
	case block > e.LastModifiedAtBlock:
		return fmt.Errorf("attribute %s is %d, after the version began", entity.AttrCreatedAtBlock, block)
	}
	// An empty map becomes nil, as in blocks read from a tar.
	if len(e.StringAttributes) == 0 {
		e.StringAttributes = nil
	}
	if len(e.NumericAttributes) == 0 {
		e.NumericAttributes = nil
	}
	return nil
}

// take removes and returns a required attribute.
func take[V any](m map[string]V, name string, err *error) V {
	v, ok := m[name]
	if !ok {
		*err = errors.Join(*err, fmt.Errorf("attribute %s is missing", name))
	}
	delete(m, name)
	return v
}

// validate checks the user's attributes by the rules that the store has for a
// block.
func validate(e *entity.Entity) error {
	op := entity.Op{
		Kind: entity.Create, Key: e.Key, BTL: 1, ContentType: e.ContentType, // a row may have expired already
		StringAttributes: e.StringAttributes, NumericAttributes: e.NumericAttributes,
	}
	b := entity.Block{Number: e.LastModifiedAtBlock, Ops: []entity.Op{op}}
	err := b.Validate()
	if opErr := (*entity.OpError)(nil); errors.As(err, &opErr) {
		return opErr.Err // without the operation's place, because the row's is already named
	}
	return err
}

// expirationOf reads the expiration from the column numeric_attributes.
func expirationOf(numbers []byte) (uint64, error) {
	m, err := column[uint64](numbers, false)
	if err != nil {
		return 0, fmt.Errorf("column numeric_attributes: %w", err)
	}
	v, ok := m[entity.AttrExpiration]
	if !ok {
		return 0, fmt.Errorf("attribute %s is missing", entity.AttrExpiration)
	}
	return min(v, entity.MaxBlock), nil
}
