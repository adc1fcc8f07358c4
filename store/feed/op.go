package feed

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/varvedb/varve/internal/jsonuint"
	"github.com/varvedb/varve/store/entity"
)

// strict refuses JSON that encoding/json accepts silently: repeated names,
// names in another case, invalid UTF-8, lone surrogates, and null for a text or
// a number.
var strict = json.JoinOptions(
	json.RejectUnknownMembers(true),
	json.WithUnmarshalers(json.JoinUnmarshalers(noNull[string](), noNull[uint64](), noNull[uint16](), noNull[uint8](), noNull[jsonuint.Uint](), json.UnmarshalFromFunc(content))),
)

// unmarshal reads JSON as strict says. For a value that does not fit, the
// library returns one of two wordings at random; this function always returns
// the same.
func unmarshal(text []byte, to any) error {
	err := json.Unmarshal(text, to, strict)
	var unfit *json.SemanticError
	switch {
	case !errors.As(err, &unfit):
		return err
	case unfit.JSONValue != nil:
		return fmt.Errorf("json: at %q: %s, want %s", unfit.JSONPointer, unfit.JSONValue, unfit.GoType)
	case unfit.Err != nil:
		return fmt.Errorf("json: at %q: %w", unfit.JSONPointer, unfit.Err)
	}
	return fmt.Errorf("json: at %q: %s, want %s", unfit.JSONPointer, unfit.JSONKind, unfit.GoType)
}

func noNull[T any]() *json.Unmarshalers {
	return json.UnmarshalFromFunc(func(dec *jsontext.Decoder, _ *T) error {
		if dec.PeekKind() == 'n' {
			return errors.New("null, want a value")
		}
		return json.SkipFunc
	})
}

// content decodes canonical base 64.
func content(dec *jsontext.Decoder, to *[]byte) error {
	if dec.PeekKind() == 'n' {
		return json.SkipFunc
	}
	var text string
	err := json.UnmarshalDecode(dec, &text)
	if err == nil && strings.ContainsAny(text, "\r\n") {
		err = errors.New("base 64 of several lines")
	}
	if err == nil {
		*to, err = base64.StdEncoding.Strict().DecodeString(text)
	}
	return err
}

// line is an operation's line, with the fields in Arkiv's order.
type line struct {
	TxIndex     field[uint16] `json:"tx_index"`
	OpIndex     field[uint16] `json:"op_index"`
	Create      *put          `json:"create,omitzero"`
	Update      *put          `json:"update,omitzero"`
	ExtendBTL   *extend       `json:"extend_btl,omitzero"`
	ChangeOwner *handOver     `json:"change_owner,omitzero"`
	Delete      *entity.Key   `json:"delete,omitzero,format:array"` // as Go's encoder writes an array of bytes
	Expire      *entity.Key   `json:"expire,omitzero,format:array"`
}

type put struct {
	Key         field[string]            `json:"key"`
	ContentType field[string]            `json:"content_type"`
	BTL         field[uint64]            `json:"btl"`
	Owner       field[string]            `json:"owner"`
	Content     field[[]byte]            `json:"content"`
	Strings     field[map[string]string] `json:"string_attributes"`
	Numbers     field[map[string]uint64] `json:"numeric_attributes"`
}

type extend struct {
	Key field[string] `json:"key"`
	BTL field[uint64] `json:"btl"`
}

type handOver struct {
	Key   field[string] `json:"key"`
	Owner field[string] `json:"owner"`
}

// field is a member that Arkiv always writes; a line without it comes from
// another writer.
type field[T any] struct {
	value T
	given bool
}

func of[T any](value T) field[T] { return field[T]{value: value} }

// MarshalJSONTo implements json.MarshalerTo.
func (f field[T]) MarshalJSONTo(enc *jsontext.Encoder) error { return json.MarshalEncode(enc, f.value) }

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (f *field[T]) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	f.given = true
	return json.UnmarshalDecode(dec, &f.value)
}

// get returns the value. Only the first of several errors is kept.
func (f *field[T]) get(name string, err *error) T {
	if !f.given && *err == nil {
		*err = fmt.Errorf("field %q is missing", name)
	}
	return f.value
}

// parsed converts a text with parse.
func parsed[T any](text field[string], name string, parse func(string) (T, error), err *error) T {
	v, wrong := parse(text.get(name, err))
	if *err == nil && wrong != nil {
		*err = fmt.Errorf("%s: %w", name, wrong)
	}
	return v
}

// decode reads one line. The operation shares no memory with it.
func decode(text []byte) (op entity.Op, err error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return op, errors.New("empty line, want one operation")
	}
	var l line
	if err := unmarshal(text, &l); err != nil {
		return op, err
	}
	op.TxIndex, op.OpIndex = uint32(l.TxIndex.get("tx_index", &err)), uint32(l.OpIndex.get("op_index", &err))
	operations := 0
	for _, is := range [...]struct {
		kind  entity.Kind
		given bool
	}{
		{entity.Create, l.Create != nil}, {entity.Update, l.Update != nil}, {entity.ExtendBTL, l.ExtendBTL != nil},
		{entity.ChangeOwner, l.ChangeOwner != nil}, {entity.Delete, l.Delete != nil}, {entity.Expire, l.Expire != nil},
	} {
		if is.given {
			op.Kind = is.kind
			operations++
		}
	}
	if operations != 1 {
		return op, fmt.Errorf("the line has %d operations, want 1", operations)
	}
	switch op.Kind {
	case entity.Create:
		l.Create.fill(&op, &err)
	case entity.Update:
		l.Update.fill(&op, &err)
	case entity.ExtendBTL:
		op.Key, op.BTL = parsed(l.ExtendBTL.Key, "key", entity.ParseKey, &err), l.ExtendBTL.BTL.get("btl", &err)
	case entity.ChangeOwner:
		op.Key = parsed(l.ChangeOwner.Key, "key", entity.ParseKey, &err)
		op.Owner = parsed(l.ChangeOwner.Owner, "owner", entity.ParseAddress, &err)
	case entity.Delete:
		op.Key = *l.Delete
	case entity.Expire:
		op.Key = *l.Expire
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", op.Kind, err)
	}
	return op, err
}

// fill sets the fields of an operation. Empty and null values become nil,
// because Go writes a nil slice or map as null.
func (p *put) fill(op *entity.Op, err *error) {
	op.Key = parsed(p.Key, "key", entity.ParseKey, err)
	op.Owner = parsed(p.Owner, "owner", entity.ParseAddress, err)
	op.ContentType, op.BTL = p.ContentType.get("content_type", err), p.BTL.get("btl", err)
	if content := p.Content.get("content", err); len(content) > 0 {
		op.Content = content
	}
	if texts := p.Strings.get("string_attributes", err); len(texts) > 0 {
		op.StringAttributes = texts
	}
	if numbers := p.Numbers.get("numeric_attributes", err); len(numbers) > 0 {
		op.NumericAttributes = numbers
	}
}

// written has the options for writing lines, the same as encoding/json's, which
// Arkiv uses.
var written = json.JoinOptions(json.Deterministic(true), jsontext.EscapeForHTML(true), jsontext.EscapeForJS(true))

// appendLine writes the line of a valid operation.
func appendLine(to *bytes.Buffer, op *entity.Op) error {
	l := &line{TxIndex: of(uint16(op.TxIndex)), OpIndex: of(uint16(op.OpIndex))}
	key, owner := of(op.Key.String()), of(op.Owner.String())
	switch op.Kind {
	case entity.Create, entity.Update:
		p := &put{
			Key: key, ContentType: of(op.ContentType), BTL: of(op.BTL), Owner: owner,
			Content: of(op.Content), Strings: of(op.StringAttributes), Numbers: of(op.NumericAttributes),
		}
		if l.Create = p; op.Kind == entity.Update {
			l.Create, l.Update = nil, p
		}
	case entity.ExtendBTL:
		l.ExtendBTL = &extend{key, of(op.BTL)}
	case entity.ChangeOwner:
		l.ChangeOwner = &handOver{key, owner}
	case entity.Delete:
		l.Delete = &op.Key
	case entity.Expire:
		l.Expire = &op.Key
	}
	err := json.MarshalWrite(to, l, written)
	to.WriteByte('\n')
	return err
}
