package compact

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/varvedb/varve/internal/lsm"
	"github.com/varvedb/varve/internal/packed"
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
