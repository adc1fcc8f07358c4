package feed

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math"

	"github.com/varvedb/varve/store/entity"
)

// fields is a set of the fields that an operation's object may have.
type fields uint8

const (
	fieldKey fields = 1 << iota
	fieldContentType
	fieldBTL
	fieldOwner
	fieldContent
	fieldStrings
	fieldNumbers
)

// fieldNames are in the order of the bits.
var fieldNames = [...]string{"key", "content_type", "btl", "owner", "content", "string_attributes", "numeric_attributes"}

// fieldsOf tells the fields of each kind. Arkiv writes all of them always, so
// a missing one is an error as much as an unknown one.
var fieldsOf = map[entity.Kind]fields{
	entity.Create:      1<<len(fieldNames) - 1,
	entity.Update:      1<<len(fieldNames) - 1,
	entity.ExtendBTL:   fieldKey | fieldBTL,
	entity.ChangeOwner: fieldKey | fieldOwner,
}

func fieldOf(name []byte) fields {
	for i, known := range fieldNames {
		if string(name) == known {
			return 1 << i
		}
	}
	return 0
}

// firstName returns the name of the lowest field in f, which is not empty.
func (f fields) firstName() string {
	for i, name := range fieldNames {
		if f&(1<<i) != 0 {
			return name
		}
	}
	return ""
}

// opDecoder reads operations of the block tar, one a line.
type opDecoder struct{ scanner }

// decode reads one line. The operation shares no memory with it.
func (d *opDecoder) decode(line []byte) (op entity.Op, err error) {
	d.reset(line)
	if d.peek() == 0 && d.pos == len(line) {
		return op, errors.New("empty line, want one operation")
	}
	if err := d.expect('{', "an operation's object"); err != nil {
		return op, err
	}
	var seenTx, seenOp bool
	for n := 0; ; n++ {
		more, err := d.more(n, '}')
		if err != nil {
			return op, err
		}
		if !more {
			break
		}
		name, err := d.name()
		if err != nil {
			return op, err
		}
		switch string(name) {
		case "tx_index":
			err = d.index("tx_index", &op.TxIndex, &seenTx)
		case "op_index":
			err = d.index("op_index", &op.OpIndex, &seenOp)
		default:
			err = d.operation(name, &op)
		}
		if err != nil {
			return op, err
		}
	}
	switch {
	case !seenTx:
		return op, errors.New("tx_index is missing")
	case !seenOp:
		return op, errors.New("op_index is missing")
	case op.Kind == 0:
		return op, errors.New("the line has no operation")
	}
	return op, d.end()
}

func (d *opDecoder) index(name string, to *uint32, seen *bool) error {
	if *seen {
		return d.nameErrorf("%s is given twice", name)
	}
	*seen = true
	v, err := d.uint(math.MaxUint16)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	*to = uint32(v)
	return nil
}

// operation reads the member that names the kind.
func (d *opDecoder) operation(name []byte, op *entity.Op) error {
	kind, ok := entity.ParseKind(string(name))
	if !ok {
		return d.nameErrorf("unknown field or operation %q", name)
	}
	if op.Kind != 0 {
		return d.nameErrorf("two operations in one line, %s and %s", op.Kind, kind)
	}
	op.Kind = kind
	var err error
	if allowed := fieldsOf[kind]; allowed != 0 {
		err = d.body(op, allowed)
	} else {
		err = d.keyArray(&op.Key)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", kind, err)
	}
	return nil
}

func (d *opDecoder) body(op *entity.Op, allowed fields) error {
	if err := d.expect('{', "an object"); err != nil {
		return err
	}
	var seen fields
	for n := 0; ; n++ {
		more, err := d.more(n, '}')
		if err != nil {
			return err
		}
		if !more {
			break
		}
		name, err := d.name()
		if err != nil {
			return err
		}
		f := fieldOf(name)
		switch {
		case f&allowed == 0:
			return d.nameErrorf("unknown field %q", name)
		case f&seen != 0:
			return d.nameErrorf("field %q is given twice", name)
		}
		seen |= f
		if err := d.field(f, op); err != nil {
			return fmt.Errorf("%s: %w", f.firstName(), err)
		}
	}
	if missing := allowed &^ seen; missing != 0 {
		return d.errorf("field %q is missing", missing.firstName())
	}
	return nil
}

func (d *opDecoder) field(f fields, op *entity.Op) (err error) {
	var text []byte
	switch f {
	case fieldKey, fieldOwner, fieldContentType:
		if text, err = d.str("a string"); err != nil {
			return err
		}
	}
	switch f {
	case fieldKey:
		op.Key, err = entity.ParseKey(string(text))
	case fieldOwner:
		op.Owner, err = entity.ParseAddress(string(text))
	case fieldContentType:
		op.ContentType = d.intern(text)
	case fieldBTL:
		op.BTL, err = d.uint(math.MaxUint64)
	case fieldContent:
		op.Content, err = d.base64()
	case fieldStrings:
		op.StringAttributes, err = d.stringMap()
	case fieldNumbers:
		op.NumericAttributes, err = d.numericMap()
	}
	return err
}

// base64 reads bytes in standard base64. Empty and null, which is how Go
// writes a nil slice, give nil.
func (d *opDecoder) base64() ([]byte, error) {
	if d.null() {
		return nil, nil
	}
	text, err := d.plainStr("a string in base64")
	if err != nil || len(text) == 0 {
		return nil, err
	}
	enc := base64.StdEncoding.Strict()
	data := make([]byte, enc.DecodedLen(len(text)))
	n, err := enc.Decode(data, text)
	if err != nil {
		return nil, err
	}
	if enc.EncodedLen(n) != len(text) {
		return nil, errors.New("line breaks within base64") // Decode skips them
	}
	return data[:n:n], nil
}

// keyArray reads a key written as an array of 32 numbers, as Go's encoder
// writes an array of bytes.
func (d *opDecoder) keyArray(key *entity.Key) error {
	if err := d.expect('[', "the key as an array of 32 numbers"); err != nil {
		return err
	}
	for n := 0; ; n++ {
		more, err := d.more(n, ']')
		if err != nil {
			return err
		}
		if !more && n == len(key) {
			return nil
		}
		if !more || n == len(key) {
			return d.errorf("the key has not %d numbers", len(key))
		}
		v, err := d.uint(math.MaxUint8)
		if err != nil {
			return err
		}
		key[n] = byte(v)
	}
}
