package compact

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"

	"github.com/varvedb/varve/internal/lsm"
	"github.com/varvedb/varve/internal/packed"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
)

// An entity is found by terms: an attribute and a value, so encoded that terms sort as
// values do. The space of a term is its attribute's number. In spaces with the bit past
// are the terms that an entity had in a closed version and no longer has.
const past = 1 << 31

// Attribute numbers below firstName are our own.
const (
	attrOwner      = 1
	attrCreator    = 2
	attrExpiration = 3
	attrModified   = 4
	attrUnnamed    = 5 // of attributes whose name has no number
)

// wholeText is the length up to which a string stands in postings as it is. Of a longer one stand its first
// prefixText bytes and a hash, and what is found by it must be compared.
const (
	wholeText  = 32
	prefixText = 24
	hashedText = prefixText + 9 // longer than any whole text
)

func encodeText(text []byte) string {
	if len(text) <= wholeText {
		return string(text)
	}
	sum := sha256.Sum256(text)
	buf := make([]byte, 0, hashedText)
	return string(append(append(buf, text[:prefixText]...), sum[:hashedText-prefixText]...))
}

func encodeNumber(n uint64) string {
	var buf [9]byte
	return string(packed.AppendOrdered(buf[:0], n))
}

// terms returns everything that a version is found by.
func (v *version) terms() ([]lsm.Term, error) {
	r, err := parse(v.data)
	if err != nil {
		return nil, err
	}
	list := make([]lsm.Term, 0, 24)
	list = append(list,
		lsm.Term{Space: attrOwner, Value: string(r.owner)},
		lsm.Term{Space: attrCreator, Value: string(r.creator)},
		lsm.Term{Space: attrExpiration, Value: encodeNumber(uint64(v.expires))},
		lsm.Term{Space: attrModified, Value: encodeNumber(uint64(v.from))})
	err = r.each(func(a *attribute) bool {
		t := lsm.Term{Space: uint32(a.id)}
		if a.kind == stringName {
			t.Value = encodeText(a.text)
		} else {
			t.Value = encodeNumber(a.number)
		}
		if a.id == 0 {
			t.Space, t.Value = attrUnnamed, string(spelledName(a.kind, string(a.spelled)))+t.Value
		}
		list = append(list, t)
		return true
	})
	return list, err
}

// state is the stored versions of an entity.
type state struct {
	current *version // nil: it has none
	closed  []*version
}

// all returns the versions, the current one last.
func (s *state) all() []*version {
	if s.current == nil {
		return s.closed
	}
	return append(slices.Clip(s.closed), s.current)
}

// terms returns the terms of the current version and of closed versions, with
// duplicates. The terms of one version may be known already.
func (s *state) terms(known *version, its []lsm.Term) (current, closed []lsm.Term, err error) {
	if s.current != nil {
		if current, err = s.current.terms(); err != nil {
			return nil, nil, err
		}
	}
	for _, v := range s.closed {
		terms := its
		if known == nil || v.from != known.from {
			if terms, err = v.terms(); err != nil {
				return nil, nil, err
			}
		}
		closed = append(closed, terms...)
	}
	return current, closed, nil
}

// appendEdits appends what becomes of the postings of an entity that was in one state and
// is in another. The lists are short: to search them is faster than to make maps.
func appendEdits(edits []lsm.Edit, id int64, before, after *state) ([]lsm.Edit, error) {
	was, closed, err := before.terms(nil, nil)
	if err != nil {
		return nil, err
	}
	now, ended, err := after.terms(before.current, was)
	if err != nil {
		return nil, err
	}
	edit := func(t lsm.Term, space uint32, add bool) {
		t.Space |= space
		edits = append(edits, lsm.Edit{Term: t, ID: id, Add: add})
	}
	for _, t := range now {
		if !slices.Contains(was, t) {
			edit(t, 0, true)
		}
	}
	for _, t := range was {
		if !slices.Contains(now, t) {
			edit(t, 0, false)
		}
	}
	for i, t := range ended {
		had := slices.Contains(closed, t) && !slices.Contains(was, t)
		if !had && !slices.Contains(now, t) && !slices.Contains(ended[:i], t) {
			edit(t, past, true)
		}
	}
	for _, t := range closed {
		if !slices.Contains(ended, t) {
			edit(t, past, false)
		}
	}
	return edits, nil
}

// hashKey is the number that a key is found by. Keys may be chosen to share it:
// what is found by it is compared with the key.
func hashKey(k entity.Key) int64 {
	sum := sha256.Sum256(k[:])
	return int64(binary.BigEndian.Uint64(sum[:8]))
}

// nameKind is what a name is of.
type nameKind int64

const (
	stringName nameKind = iota + 1
	numberName
	contentType
)

// firstName is the lowest number of a name: attributes below are our own.
const firstName = 16

// maxNames bounds the dictionary, which is held in memory: names beyond it are spelled out in each version.
var maxNames int64 = 1 << 16

type name struct {
	kind nameKind
	text string
}

// names is the dictionary of attribute names and content types. Numbers are given out in order from firstName. What
// is committed is shared by all views; a write transaction adds to a fork.
type names struct {
	base *names // of a fork

	mu    sync.RWMutex
	byID  []name // from firstName on, those of base too; only ever appended to
	index map[name]int64
}

func newNames() *names { return &names{index: map[name]int64{}} }

// fork returns names that may be added to, without anybody else's knowing.
func (n *names) fork() *names {
	return &names{base: n, byID: slices.Clip(n.list()), index: map[name]int64{}}
}

// list returns the names so far, which do not change.
func (n *names) list() []name {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.byID
}

// id returns a name's number, or 0.
func (n *names) id(kind nameKind, text string) int64 {
	if n.base != nil {
		if id := n.base.id(kind, text); id != 0 {
			return id
		}
	}
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.index[name{kind, text}]
}

// add gives a name a number, or 0 when the dictionary is full.
func (n *names) add(kind nameKind, text string) (id int64, added bool) {
	if id := n.id(kind, text); id > 0 || int64(len(n.byID)) >= maxNames {
		return id, false
	}
	id = n.highest() + 1
	n.put(id, name{kind, text})
	return id, true
}

func (n *names) highest() int64 { return firstName + int64(len(n.list())) - 1 }

// load reads the names above those it has, up to a number.
func (l *Layout) loadNames(ctx context.Context, q driver.Querier, n *names, upTo int64) error {
	if n.highest() >= upTo {
		return nil
	}
	err := l.sql.Each(ctx, q, "names", []any{n.highest()}, func(rows driver.Rows) error {
		var id, kind int64
		var spelled []byte
		if err := rows.Scan(&id, &kind, &spelled); err != nil {
			return err
		}
		n.put(id, name{nameKind(kind), string(spelled)})
		return nil
	})
	if err == nil && n.highest() < upTo {
		err = fmt.Errorf("%w: name %d is missing", driver.ErrCorrupt, n.highest()+1)
	}
	return err
}

// put adds a name, if it is the next: another reader may have been faster.
func (n *names) put(id int64, key name) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if id == firstName+int64(len(n.byID)) {
		n.byID = append(n.byID, key)
		n.index[key] = id
	}
}

// spelledName stands for a name without a number in postings: 8 bytes of its
// hash. Two names may share them, so postings of such names are never exact.
func spelledName(kind nameKind, text string) []byte {
	sum := sha256.Sum256(append([]byte{byte(kind)}, text...))
	return sum[:8]
}
