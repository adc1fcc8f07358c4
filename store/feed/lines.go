package feed

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/varvedb/varve/internal/jsonuint"
	"github.com/varvedb/varve/store/entity"
)

// MaxBlockLine is the maximum length of a block's JSON line, in bytes.
const MaxBlockLine = 256 << 20

// blockLine is a block as a line of JSON. docs/blocks.md describes the members.
type blockLine struct {
	Block   field[uint64] `json:"block"`
	Time    jsonuint.Uint `json:"time,omitzero"`
	Hash    entity.Hash   `json:"hash,omitzero"`
	Horizon uint64        `json:"horizon,omitzero"`
	Ops     []opLine      `json:"operations,omitempty"`
}

// opLine is an operation of a block's line.
type opLine struct {
	Op          field[string]            `json:"op"`
	TxIndex     *uint16                  `json:"tx_index,omitzero"`
	OpIndex     *uint16                  `json:"op_index,omitzero"`
	Key         field[string]            `json:"key"`
	Owner       *string                  `json:"owner,omitzero"`
	Lifetime    *jsonuint.Uint           `json:"lifetime,omitzero"`
	ContentType *string                  `json:"content_type,omitzero"`
	Payload     []byte                   `json:"payload,omitempty"` // in base 64
	Text        *string                  `json:"payload_text,omitzero"`
	Strings     map[string]string        `json:"string_attributes,omitempty"`
	Numbers     map[string]jsonuint.Uint `json:"numeric_attributes,omitempty"`
}

// opNames are the names of the operations in JSON lines.
var opNames = []string{
	entity.Create: "create", entity.Update: "update", entity.ExtendBTL: "extend",
	entity.ChangeOwner: "change_owner", entity.Delete: "delete", entity.Expire: "expire",
}

// ReadLines streams the blocks of JSON lines, one block a line, in the order of
// their numbers. It skips blank lines. The sequence can be iterated once. It
// ends at the first error, which names the line, and the member if one is at
// fault, and wraps ErrFormat unless reading r itself failed. Blocks have passed
// entity.Block.Validate and belong to the caller.
func ReadLines(r io.Reader) iter.Seq2[entity.Block, error] { return readLines(r, MaxBlockLine) }

func readLines(r io.Reader, most int) iter.Seq2[entity.Block, error] {
	return func(yield func(entity.Block, error) bool) {
		lines := bufio.NewScanner(r)
		lines.Buffer(nil, most+1) // with the line feed
		last, next := 0, uint64(0)
		for n := 1; lines.Scan(); n++ {
			if len(bytes.TrimSpace(lines.Bytes())) == 0 {
				continue
			}
			b, err := decodeBlock(lines.Bytes())
			if err == nil && b.Number < next {
				err = fmt.Errorf("block %d after block %d of line %d, want rising block numbers", b.Number, next-1, last)
			}
			if err != nil {
				yield(entity.Block{}, fmt.Errorf("line %d: %w", n, malformed("%w", err)))
				return
			}
			if last, next = n, b.Number+1; !yield(b, nil) {
				return
			}
		}
		err := lines.Err()
		if errors.Is(err, bufio.ErrTooLong) {
			err = malformed("the line after block %d is longer than %d bytes", max(next, 1)-1, most)
		}
		if err != nil {
			yield(entity.Block{}, err)
		}
	}
}

// decodeBlock reads one line. The block shares no memory with it.
func decodeBlock(text []byte) (b entity.Block, err error) {
	var l blockLine
	if err := unmarshal(text, &l); err != nil {
		return b, err
	}
	b = entity.Block{Number: l.Block.get("block", &err), Time: uint64(l.Time), Hash: l.Hash, Horizon: l.Horizon}
	for i := range l.Ops {
		op, wrong := l.Ops[i].operation(i)
		if wrong != nil {
			return b, fmt.Errorf("at \"/operations/%d\": %w", i, wrong)
		}
		b.Ops = append(b.Ops, op)
	}
	if err == nil {
		err = b.Validate()
	}
	return b, err
}

// operation returns the i-th operation of a block.
func (l *opLine) operation(i int) (op entity.Op, err error) {
	name := l.Op.get("op", &err)
	op.Key = parsed(l.Key, "key", entity.ParseKey, &err)
	if err != nil {
		return op, err
	}
	kind := slices.Index(opNames, name)
	if op.Kind = entity.Kind(max(kind, 0)); op.Kind == 0 {
		return op, fmt.Errorf("op %q is not known; known are %q", name, opNames[1:])
	}
	if err := l.fits(op.Kind); err != nil {
		return op, err
	}

	// If the line does not number its operations, they are numbered in order.
	op.TxIndex, op.OpIndex = uint32(i)>>16, uint32(i)&math.MaxUint16
	switch {
	case (l.TxIndex == nil) != (l.OpIndex == nil):
		return op, errors.New("give tx_index and op_index both, or neither")
	case l.TxIndex != nil:
		op.TxIndex, op.OpIndex = uint32(*l.TxIndex), uint32(*l.OpIndex)
	}
	if l.Owner != nil {
		if op.Owner, err = entity.ParseAddress(*l.Owner); err != nil {
			return op, fmt.Errorf("owner: %w", err)
		}
	}
	if op.Kind == entity.Create || op.Kind == entity.Update {
		op.BTL = entity.MaxBlock // for ever
	}
	if l.Lifetime != nil {
		op.BTL = uint64(*l.Lifetime)
	}
	if l.ContentType != nil {
		op.ContentType = *l.ContentType
	}
	if len(l.Payload) > 0 {
		op.Content = l.Payload
	}
	if l.Text != nil && *l.Text != "" {
		op.Content = []byte(*l.Text)
	}
	if len(l.Strings) > 0 {
		op.StringAttributes = l.Strings
	}
	if len(l.Numbers) > 0 {
		op.NumericAttributes = jsonuint.Map(l.Numbers)
	}
	return op, nil
}

// fits refuses an operation that lacks a member it needs, or has a member it
// does not use: the writer of such a line meant something by it.
func (l *opLine) fits(kind entity.Kind) error {
	put := kind == entity.Create || kind == entity.Update
	for _, member := range []struct {
		name        string
		given, used bool
	}{
		{"owner", l.Owner != nil, put || kind == entity.ChangeOwner},
		{"lifetime", l.Lifetime != nil, put || kind == entity.ExtendBTL},
		{"content_type", l.ContentType != nil, put},
		{"payload", l.Payload != nil, put},
		{"payload_text", l.Text != nil, put},
		{"string_attributes", l.Strings != nil, put},
		{"numeric_attributes", l.Numbers != nil, put},
	} {
		if member.given && !member.used {
			return fmt.Errorf("%s takes no %q", opNames[kind], member.name)
		}
	}
	switch {
	case l.Payload != nil && l.Text != nil:
		return errors.New(`"payload" and "payload_text" are both given`)
	case kind == entity.ExtendBTL && l.Lifetime == nil:
		return errors.New(`field "lifetime" is missing`)
	case kind == entity.ChangeOwner && l.Owner == nil:
		return errors.New(`field "owner" is missing`)
	}
	return nil
}

// WriteLines writes blocks as JSON lines, from which ReadLines reads the same
// blocks. It stops at the first error, including the stream's, and when ctx
// ends. Wrote, if not nil, is called after each block.
func WriteLines(ctx context.Context, w io.Writer, blocks iter.Seq2[entity.Block, error], wrote func(b *entity.Block)) error {
	out := bufio.NewWriterSize(w, sourceBuffer)
	for b, err := range blocks {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			err = appendBlock(out, &b)
		}
		if err != nil {
			return err
		}
		if wrote != nil {
			wrote(&b)
		}
	}
	return out.Flush()
}

func appendBlock(to *bufio.Writer, b *entity.Block) error {
	if err := b.Validate(); err != nil {
		return err
	}
	l := blockLine{Block: of(b.Number), Time: jsonuint.Uint(b.Time), Hash: b.Hash, Horizon: b.Horizon}
	for i := range b.Ops {
		l.Ops = append(l.Ops, lineOf(&b.Ops[i], b.Number))
	}
	text, err := json.Marshal(&l, json.Deterministic(true))
	switch {
	case err != nil:
		return fmt.Errorf("block %d: %w", b.Number, err)
	case len(text) > MaxBlockLine:
		return fmt.Errorf("block %d: its line has %d bytes, at most %d may be read; write a block tar", b.Number, len(text), MaxBlockLine)
	}
	_, err = to.Write(append(text, '\n'))
	return err
}

// lineOf converts a valid operation of a block. An unlimited lifetime is left
// out.
func lineOf(op *entity.Op, block uint64) opLine {
	tx, index, owner := uint16(op.TxIndex), uint16(op.OpIndex), op.Owner.String()
	l := opLine{Op: of(opNames[op.Kind]), Key: of(op.Key.String()), TxIndex: &tx, OpIndex: &index}
	put := op.Kind == entity.Create || op.Kind == entity.Update
	if put && op.Owner != (entity.Address{}) || op.Kind == entity.ChangeOwner {
		l.Owner = &owner
	}
	if put && entity.AddBlocks(block, op.BTL) < entity.MaxBlock || op.Kind == entity.ExtendBTL {
		l.Lifetime = new(jsonuint.Uint(op.BTL))
	}
	if put {
		l.Payload, l.Strings, l.Numbers = op.Content, op.StringAttributes, jsonuint.FromMap(op.NumericAttributes)
		if op.ContentType != "" {
			l.ContentType = &op.ContentType
		}
	}
	return l
}
