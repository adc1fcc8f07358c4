package compact

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/varvedb/varve/internal/packed"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
)

// version is one version of an entity as the tables and the log hold it.
type version struct {
	id      int64
	key     entity.Key
	from    int64
	to      int64 // the first block at which it is not visible
	expires int64
	content int64 // number of its payload, 0 without one
	data    []byte
	payload []byte // nil unless it was read together with the version
}

// visible reports whether a version can be seen at a block.
func (v *version) visible(at int64) bool { return v.from <= at && at < v.to }

// The data of a version:
//
//	flags         1 byte
//	creator       20 bytes
//	owner         20 bytes, unless it is the creator (sameOwner)
//	sequence, size of the payload
//	content type  a name
//	strings       their number; each a name, a length and the bytes
//	numbers       their number; each a name and the value
//
// Integers are varints. A name is its number, or 0, a length and the bytes.
const sameOwner = 1

// pack appends the data of an entity. number gives the numbers of names.
func pack(buf []byte, e *entity.Entity, number func(nameKind, string) int64) []byte {
	var names [16]string
	if e.Owner == e.Creator {
		buf = append(append(buf, sameOwner), e.Creator[:]...)
	} else {
		buf = append(append(append(buf, 0), e.Creator[:]...), e.Owner[:]...)
	}
	buf = binary.AppendUvarint(buf, e.Sequence)
	buf = binary.AppendUvarint(buf, uint64(len(e.Content)))
	buf = appendName(buf, contentType, e.ContentType, number)
	buf = binary.AppendUvarint(buf, uint64(len(e.StringAttributes)))
	for _, name := range packed.Names(names[:0], e.StringAttributes) {
		buf = packed.AppendText(appendName(buf, stringName, name, number), e.StringAttributes[name])
	}
	buf = binary.AppendUvarint(buf, uint64(len(e.NumericAttributes)))
	for _, name := range packed.Names(names[:0], e.NumericAttributes) {
		buf = binary.AppendUvarint(appendName(buf, numberName, name, number), e.NumericAttributes[name])
	}
	return buf
}

func appendName(buf []byte, kind nameKind, text string, number func(nameKind, string) int64) []byte {
	id := number(kind, text)
	buf = binary.AppendUvarint(buf, uint64(id))
	if id == 0 {
		buf = packed.AppendText(buf, text)
	}
	return buf
}

// errTorn: the data of a version ends too early or too late.
var errTorn = errors.New("its data is torn")

// readName reads a name: its number, or 0 and its spelling.
func readName(r *packed.Reader) (id int64, spelled []byte) {
	id = int64(r.Uint())
	if id == 0 {
		spelled = r.Text()
	}
	return id, spelled
}

// record is the decoded data of a version, with attributes that are not decoded.
type record struct {
	creator, owner []byte
	sequence, size uint64
	typeID         int64
	typeText       []byte
	strings        uint64
	attrs          []byte // strings, then the number of numbers, then these
}

// parse decodes data.
func parse(data []byte) (r record, err error) {
	c := packed.Reader{Rest: data}
	flags := c.Bytes(1)
	r.creator = c.Bytes(uint64(len(entity.Address{})))
	r.owner = r.creator
	if len(flags) == 1 && flags[0]&sameOwner == 0 {
		r.owner = c.Bytes(uint64(len(entity.Address{})))
	}
	r.sequence, r.size = c.Uint(), c.Uint()
	r.typeID, r.typeText = readName(&c)
	r.strings = c.Uint()
	r.attrs = c.Rest
	// A damaged number may be huge; no memory is allocated for it.
	if c.Torn || r.strings > uint64(len(r.attrs)) {
		return r, fmt.Errorf("%w: %w", driver.ErrCorrupt, errTorn)
	}
	return r, nil
}

// attribute is one of a record's attributes.
type attribute struct {
	kind    nameKind
	id      int64  // of its name, or 0
	spelled []byte // its name when id is 0
	text    []byte // of a string
	number  uint64
}

// each calls f with each attribute until it returns false. The error says that the data is torn.
func (r *record) each(f func(a *attribute) bool) error {
	c := packed.Reader{Rest: r.attrs}
	a := attribute{kind: stringName}
	for range r.strings {
		a.id, a.spelled = readName(&c)
		a.text = c.Text()
		if c.Torn {
			break
		}
		if !f(&a) {
			return nil
		}
	}
	a = attribute{kind: numberName}
	for n := c.Count(); n > 0 && !c.Torn; n-- {
		a.id, a.spelled = readName(&c)
		a.number = c.Uint()
		if !c.Torn && !f(&a) {
			return nil
		}
	}
	if c.Torn || len(c.Rest) > 0 {
		return fmt.Errorf("%w: %w", driver.ErrCorrupt, errTorn)
	}
	return nil
}

// entity makes the entity of a version, without payload, and if wanted without attributes.
func (v *version) entity(dictionary []name, attributes bool) (*entity.Entity, error) {
	r, err := parse(v.data)
	if err != nil {
		return nil, fmt.Errorf("entity %s, version of block %d: %w", v.key, v.from, err)
	}
	e := &entity.Entity{
		Key: v.key, Creator: entity.Address(r.creator), Owner: entity.Address(r.owner),
		Sequence: r.sequence, LastModifiedAtBlock: uint64(v.from), Expiration: uint64(v.expires),
	}
	ok := true
	spell := func(id int64, spelled []byte) string {
		if id == 0 {
			return string(spelled)
		}
		if id < firstName || id-firstName >= int64(len(dictionary)) {
			ok = false
			return ""
		}
		return dictionary[id-firstName].text
	}
	e.ContentType = spell(r.typeID, r.typeText)
	if attributes {
		e.StringAttributes, e.NumericAttributes = make(map[string]string, r.strings), map[string]uint64{}
		err = r.each(func(a *attribute) bool {
			text := spell(a.id, a.spelled)
			switch {
			case !ok:
			case a.kind == stringName:
				e.StringAttributes[text] = string(a.text)
			default:
				e.NumericAttributes[text] = a.number
			}
			return ok
		})
	}
	if err == nil && !ok {
		err = fmt.Errorf("%w: a name has no number", driver.ErrCorrupt)
	}
	if err != nil {
		return nil, fmt.Errorf("entity %s, version of block %d: %w", v.key, v.from, err)
	}
	return e, nil
}

// versions calls f with the versions that a statement gives.
func (l *Layout) versions(ctx context.Context, q driver.Querier, statement string, args []any, f func(*version) error) error {
	return l.sql.Each(ctx, q, statement, args, scanning(f))
}

// versionsIn is like versions, for a statement over a list.
func (l *Layout) versionsIn(ctx context.Context, q driver.Querier, statement string, list, more []any, f func(*version) error) error {
	return l.sql.EachIn(ctx, q, statement, list, more, scanning(f))
}

func scanning(f func(*version) error) func(driver.Rows) error {
	return func(rows driver.Rows) error {
		v, err := scanVersion(rows)
		if err != nil {
			return err
		}
		return f(v)
	}
}

// scanVersion reads the columns of a version, and the columns after them into dest.
func scanVersion(rows driver.Rows, dest ...any) (*version, error) {
	v := &version{}
	var key []byte
	if err := rows.Scan(append([]any{&v.id, &v.from, &v.to, &v.expires, &key, &v.content, &v.data}, dest...)...); err != nil {
		return nil, err
	}
	if len(key) != len(v.key) {
		return nil, fmt.Errorf("%w: entity key of %d bytes", driver.ErrCorrupt, len(key))
	}
	v.key = entity.Key(key)
	if v.to == 0 { // no version ends at the first block there can be
		v.to = v.expires
	}
	return v, nil
}
