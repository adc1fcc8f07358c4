package scaler

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/varvedb/varve/store/entity"
)

// mapper maps the keys and ids of the source to the keys and ids of a copy. It
// is a pure function of the name and the copy, so it needs no memory.
type mapper struct {
	seed   uint64
	copy   uint64 // from 1
	suffix string
}

func newMapper(seed, number uint64) mapper {
	m := mapper{seed: seed, copy: number, suffix: fmt.Sprintf("#%d", number)}
	if seed != 0 {
		m.suffix = fmt.Sprintf("#%x.%d", seed, number)
	}
	return m
}

// references are the names of the string attributes whose values are ids of
// entities: in the Mendoza profile, in Arkiv's block feeds and in package
// dcseed. In a copy these values get a suffix. In any attribute, a value that
// is an entity key is mapped like the key.
var references = sync.OnceValue(func() map[string]bool {
	names := map[string]bool{"stream": true}
	for _, k := range Mendoza().Kinds {
		for _, t := range k.Texts {
			switch t.Source {
			case Serial, Next, Group, ID, Key:
				names[t.Name] = true
			}
		}
	}
	return names
})

func (m *mapper) hash(what byte, name []byte) [sha256.Size]byte {
	var buf [64]byte
	b := append(buf[:0], what)
	b = binary.BigEndian.AppendUint64(b, m.seed)
	b = binary.BigEndian.AppendUint64(b, m.copy)
	return sha256.Sum256(append(b, name...))
}

func (m *mapper) key(k entity.Key) entity.Key { return m.hash('k', k[:]) }

// moved reports whether the copy of an entity belongs to the half that is in a
// later epoch.
func moved(copied entity.Key) bool { return copied[len(copied)-1]&1 != 0 }

// op returns the copy of an operation, with its mapped key. It shares the
// content, and unchanged attributes, with the original.
func (m *mapper) op(op *entity.Op, key entity.Key) entity.Op {
	c := *op
	c.Key = key
	c.StringAttributes = m.attributes(op.StringAttributes)
	return c
}

func (m *mapper) attributes(texts map[string]string) map[string]string {
	result, cloned := texts, false
	for name, value := range texts {
		mapped := m.value(name, value)
		if mapped == value {
			continue
		}
		if !cloned {
			result, cloned = maps.Clone(texts), true
		}
		result[name] = mapped
	}
	return result
}

func (m *mapper) value(name, value string) string {
	if len(value) == 2+2*len(entity.Key{}) && value[:2] == "0x" {
		if key, err := entity.ParseKey(value); err == nil {
			return m.key(key).String()
		}
	}
	if value != "" && references()[name] {
		return value + m.suffix
	}
	return value
}

// transactions gives the copies in a block transaction indexes after the
// original's, so that creations have different sequences. Only creations are
// counted, because a source such as a database does not know the transactions
// of other operations, and must lead to the same copies.
type transactions struct {
	ranks []uint32 // the indexes of transactions that create, sorted
	base  uint32
}

func (t *transactions) read(b *entity.Block) {
	t.ranks, t.base = t.ranks[:0], 0
	for i := range b.Ops {
		if b.Ops[i].Kind != entity.Create {
			continue
		}
		tx := b.Ops[i].TxIndex
		t.base = max(t.base, tx+1)
		if n := len(t.ranks); n == 0 || t.ranks[n-1] != tx {
			t.ranks = append(t.ranks, tx)
		}
	}
	slices.Sort(t.ranks)
	t.ranks = slices.Compact(t.ranks)
}

// index returns the transaction index of copy c, from 1. It may exceed the
// range.
func (t *transactions) index(tx uint32, c uint64) uint64 {
	rank, _ := slices.BinarySearch(t.ranks, tx)
	return uint64(t.base) + (c-1)*uint64(len(t.ranks)) + uint64(rank)
}
