package chain

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/andybalholm/brotli"

	"github.com/varvedb/varve/store/entity"
)

// The limits of a transaction's operations.
const (
	// MaxOperations is the size of a transaction's operations after decompression, in
	// bytes: the chain's own limit.
	MaxOperations = 20 << 20
	// MaxCreates bounds the entities that a transaction may create, because 16
	// bits of an entity's sequence hold the operation's index in its
	// transaction.
	MaxCreates = 1 << 16
	// MaxList bounds the length of any other list.
	MaxList = 1 << 20
)

// The errors of a transaction's input.
var (
	// ErrCompression: the input is not Brotli.
	ErrCompression = errors.New("input is not valid Brotli")
	// ErrTooLarge: the input is above MaxOperations after decompression, or an
	// answer of the execution client is above Client's limit.
	ErrTooLarge = errors.New("too large")
	// ErrRLP: the decompressed input is not the RLP of operations.
	ErrRLP = errors.New("malformed RLP")
	// ErrTooMany: a list is above MaxCreates or MaxList.
	ErrTooMany = errors.New("too many")
	// ErrDuplicate: an attribute is given twice.
	ErrDuplicate = errors.New("attribute given twice")
)

// Operations are the operations of a transaction to the Processor.
type Operations struct {
	Creates      []Create
	Updates      []Update
	Deletes      []entity.Key
	Extensions   []Extension
	OwnerChanges []OwnerChange
}

// Create makes an entity. Its key is in the transaction's receipt.
type Create struct {
	BTL         uint64 // blocks to live
	ContentType string
	Payload     []byte
	Strings     map[string]string
	Numbers     map[string]uint64
}

// Update replaces everything of an entity but its creator.
type Update struct {
	Key entity.Key
	Create
}

// Extension adds to the lifetime of an entity.
type Extension struct {
	Key    entity.Key
	Blocks uint64
}

// OwnerChange gives an entity to another account.
type OwnerChange struct {
	Key   entity.Key
	Owner entity.Address
}

// DecodeOperations reads a transaction's input. It fails with ErrCompression,
// ErrTooLarge, ErrRLP, ErrTooMany or ErrDuplicate.
func DecodeOperations(input []byte) (*Operations, error) {
	plain, err := io.ReadAll(io.LimitReader(brotli.NewReader(bytes.NewReader(input)), MaxOperations+1))
	if err != nil {
		return nil, fmt.Errorf("decode operations: %w: %w", ErrCompression, err)
	}
	if len(plain) > MaxOperations {
		return nil, fmt.Errorf("decode operations: %w: above %d bytes after decompression", ErrTooLarge, MaxOperations)
	}
	ops, err := decodeRLP(plain)
	if err != nil {
		return nil, fmt.Errorf("decode operations: %w", err)
	}
	return ops, nil
}

func decodeRLP(plain []byte) (*Operations, error) {
	outer := reader{rest: plain}
	r := reader{rest: outer.next(true), err: outer.err}
	if err := outer.end(); err != nil {
		return nil, err
	}
	ops := &Operations{}
	r.each("creates", MaxCreates, func(r *reader) {
		c := Create{BTL: r.uint(), ContentType: r.text(), Payload: r.bytes()}
		c.attributes(r)
		ops.Creates = append(ops.Creates, c)
	})
	r.each("updates", MaxList, func(r *reader) {
		var u Update
		r.fixed(u.Key[:])
		u.ContentType, u.BTL, u.Payload = r.text(), r.uint(), r.bytes()
		u.attributes(r)
		ops.Updates = append(ops.Updates, u)
	})
	r.items("deletes", MaxList, func(r *reader) {
		var key entity.Key
		r.fixed(key[:])
		ops.Deletes = append(ops.Deletes, key)
	})
	r.each("extensions", MaxList, func(r *reader) {
		var e Extension
		r.fixed(e.Key[:])
		e.Blocks = r.uint()
		ops.Extensions = append(ops.Extensions, e)
	})
	r.each("owner changes", MaxList, func(r *reader) {
		var c OwnerChange
		r.fixed(c.Key[:])
		r.fixed(c.Owner[:])
		ops.OwnerChanges = append(ops.OwnerChanges, c)
	})
	return ops, r.end()
}

func (c *Create) attributes(r *reader) {
	r.each("string attributes", MaxList, func(r *reader) { put(r, &c.Strings, r.text(), r.text()) })
	r.each("numeric attributes", MaxList, func(r *reader) { put(r, &c.Numbers, r.text(), r.uint()) })
}

func put[V any](r *reader, m *map[string]V, name string, value V) {
	if _, twice := (*m)[name]; twice && r.err == nil {
		r.err = fmt.Errorf("%w: %q", ErrDuplicate, name)
	}
	if *m == nil {
		*m = map[string]V{}
	}
	(*m)[name] = value
}

// Encode returns the input of a transaction that carries the operations, with
// attributes sorted by name. It compresses quickly rather than well.
func (ops *Operations) Encode() ([]byte, error) {
	var out bytes.Buffer
	w := brotli.NewWriterLevel(&out, brotli.BestSpeed)
	if _, err := w.Write(ops.encodeRLP()); err != nil {
		return nil, fmt.Errorf("encode operations: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("encode operations: %w", err)
	}
	return out.Bytes(), nil
}

func (ops *Operations) encodeRLP() []byte {
	lists := appendList(nil, joined(ops.Creates, func(b []byte, c Create) []byte {
		b = appendUint(b, c.BTL)
		b = appendBytes(b, []byte(c.ContentType))
		return c.appendRest(b)
	}))
	lists = appendList(lists, joined(ops.Updates, func(b []byte, u Update) []byte {
		b = appendBytes(b, u.Key[:])
		b = appendBytes(b, []byte(u.ContentType))
		b = appendUint(b, u.BTL)
		return u.appendRest(b)
	}))
	var keys []byte
	for _, key := range ops.Deletes {
		keys = appendBytes(keys, key[:])
	}
	lists = appendList(lists, keys)
	lists = appendList(lists, joined(ops.Extensions, func(b []byte, e Extension) []byte {
		return appendUint(appendBytes(b, e.Key[:]), e.Blocks)
	}))
	lists = appendList(lists, joined(ops.OwnerChanges, func(b []byte, c OwnerChange) []byte {
		return appendBytes(appendBytes(b, c.Key[:]), c.Owner[:])
	}))
	return appendList(nil, lists)
}

// joined concatenates encoded lists.
func joined[T any](list []T, items func([]byte, T) []byte) (all []byte) {
	for _, v := range list {
		all = appendList(all, items(nil, v))
	}
	return all
}

func (c *Create) appendRest(b []byte) []byte {
	b = appendBytes(b, c.Payload)
	b = appendList(b, joined(slices.Sorted(maps.Keys(c.Strings)), func(b []byte, name string) []byte {
		return appendBytes(appendBytes(b, []byte(name)), []byte(c.Strings[name]))
	}))
	return appendList(b, joined(slices.Sorted(maps.Keys(c.Numbers)), func(b []byte, name string) []byte {
		return appendUint(appendBytes(b, []byte(name)), c.Numbers[name])
	}))
}
