package feed

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/varvedb/varve/store/entity"
)

// strict reads JSON as a feed must be: encoding/json would resolve in silence what a feed must
// not contain, such as repeated names, names in another case, invalid UTF-8, lone surrogates,
// and a null for a text or a number.
var strict = json.JoinOptions(
	json.RejectUnknownMembers(true),
	json.WithUnmarshalers(json.JoinUnmarshalers(noNull[string](), noNull[uint64](), noNull[uint16](), noNull[uint8](), json.UnmarshalFromFunc(content))),
)

// unmarshal reads JSON as strict says. Where a value does not fit, the library words the error
// in one of two ways by chance; this one is always the same.
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

// content reads base 64 of which no other text has the bytes.
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

// lineRead is the line of an operation as it is read; lineJSON is as it is written.
type lineRead struct {
	TxIndex     required[uint16] `json:"tx_index"`
	OpIndex     required[uint16] `json:"op_index"`
	Create      *putRead         `json:"create"`
	Update      *putRead         `json:"update"`
	ExtendBTL   *extendRead      `json:"extend_btl"`
	ChangeOwner *ownerRead       `json:"change_owner"`
	Delete      *entity.Key      `json:"delete,format:array"` // as Go's encoder writes an array of bytes
	Expire      *entity.Key      `json:"expire,format:array"`
}

// required is a member that Arkiv writes always: a line without it is of another writer.
type required[T any] struct {
	value T
	given bool
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (r *required[T]) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	r.given = true
	return json.UnmarshalDecode(dec, &r.value)
}

// get returns the value. Of several errors the first stays.
func (r *required[T]) get(name string, err *error) T {
	if !r.given && *err == nil {
		*err = fmt.Errorf("field %q is missing", name)
	}
	return r.value
}

// parsed returns what parse makes of a text.
func parsed[T any](text required[string], name string, parse func(string) (T, error), err *error) T {
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
	var line lineRead
	if err := unmarshal(text, &line); err != nil {
		return op, err
	}
	op.TxIndex, op.OpIndex = uint32(line.TxIndex.get("tx_index", &err)), uint32(line.OpIndex.get("op_index", &err))
	operations := 0
	for _, is := range [...]struct {
		kind  entity.Kind
		given bool
	}{
		{entity.Create, line.Create != nil}, {entity.Update, line.Update != nil}, {entity.ExtendBTL, line.ExtendBTL != nil},
		{entity.ChangeOwner, line.ChangeOwner != nil}, {entity.Delete, line.Delete != nil}, {entity.Expire, line.Expire != nil},
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
		line.Create.fill(&op, &err)
	case entity.Update:
		line.Update.fill(&op, &err)
	case entity.ExtendBTL:
		op.Key, op.BTL = parsed(line.ExtendBTL.Key, "key", entity.ParseKey, &err), line.ExtendBTL.BTL.get("btl", &err)
	case entity.ChangeOwner:
		op.Key = parsed(line.ChangeOwner.Key, "key", entity.ParseKey, &err)
		op.Owner = parsed(line.ChangeOwner.Owner, "owner", entity.ParseAddress, &err)
	case entity.Delete:
		op.Key = *line.Delete
	case entity.Expire:
		op.Key = *line.Expire
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", op.Kind, err)
	}
	return op, err
}

type putRead struct {
	Key         required[string]            `json:"key"`
	ContentType required[string]            `json:"content_type"`
	BTL         required[uint64]            `json:"btl"`
	Owner       required[string]            `json:"owner"`
	Content     required[[]byte]            `json:"content"`
	Strings     required[map[string]string] `json:"string_attributes"`
	Numbers     required[map[string]uint64] `json:"numeric_attributes"`
}

// fill gives an operation the fields. What is empty, or null, which is how Go writes a nil
// slice or map, is nil.
func (p *putRead) fill(op *entity.Op, err *error) {
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

type extendRead struct {
	Key required[string] `json:"key"`
	BTL required[uint64] `json:"btl"`
}

type ownerRead struct {
	Key   required[string] `json:"key"`
	Owner required[string] `json:"owner"`
}
