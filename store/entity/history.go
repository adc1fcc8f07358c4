package entity

import (
	"bytes"
	"cmp"
	"iter"
)

// Closing is the end of a version before its expiration, by a later version or
// by deletion.
type Closing struct {
	Block uint64 // at which it ended
	Key   Key
	From  uint64 // at which it began
}

// Version is one version of an entity and the block where it ends.
type Version struct {
	Entity *Entity
	End    uint64 // the first block at which it is not visible: Expiration, unless a block ended it before
}

// History rebuilds the changesets of a history from its versions, ordered by
// (LastModifiedAtBlock, Key), and the closings among them, ordered by
// (Block, Key). It holds one block in memory. Of Change.Old only the key and
// LastModifiedAtBlock are set.
func History(openings iter.Seq2[*Entity, error], closings iter.Seq2[Closing, error]) iter.Seq2[Changeset, error] {
	return func(yield func(Changeset, error) bool) {
		nextOpening, stopOpenings := iter.Pull2(openings)
		defer stopOpenings()
		nextClosing, stopClosings := iter.Pull2(closings)
		defer stopClosings()
		m := merger{nextOpening: nextOpening, nextClosing: nextClosing}
		m.advanceOpening()
		m.advanceClosing()
		for m.err == nil && (m.opening != nil || m.more) {
			set := m.block()
			if m.err == nil && !yield(set, nil) {
				return
			}
		}
		if m.err != nil {
			yield(Changeset{}, m.err)
		}
	}
}

// merger reads two ordered streams, one item ahead of each.
type merger struct {
	nextOpening func() (*Entity, error, bool)
	nextClosing func() (Closing, error, bool)
	opening     *Entity // next, or nil at the end
	closing     Closing // next, if more
	more        bool
	err         error
}

func (m *merger) advanceOpening() {
	e, err, ok := m.nextOpening()
	if !ok {
		e = nil
	}
	m.opening, m.err = e, cmp.Or(m.err, err)
}

func (m *merger) advanceClosing() {
	c, err, ok := m.nextClosing()
	m.closing, m.more, m.err = c, ok, cmp.Or(m.err, err)
}

// block collects the changes of the lowest block that was read ahead.
func (m *merger) block() Changeset {
	set := Changeset{}
	switch {
	case m.opening == nil:
		set.Block = m.closing.Block
	case !m.more:
		set.Block = m.opening.LastModifiedAtBlock
	default:
		set.Block = min(m.opening.LastModifiedAtBlock, m.closing.Block)
	}
	for m.err == nil {
		opens := m.opening != nil && m.opening.LastModifiedAtBlock == set.Block
		closes := m.more && m.closing.Block == set.Block
		if opens && closes {
			order := bytes.Compare(m.opening.Key[:], m.closing.Key[:])
			opens, closes = order <= 0, order >= 0
		}
		if !opens && !closes {
			break
		}
		var c Change
		if closes {
			c.Key = m.closing.Key
			c.Old = &Entity{Key: c.Key, LastModifiedAtBlock: m.closing.From}
			m.advanceClosing()
		}
		if opens {
			c.Key, c.New = m.opening.Key, m.opening
			m.advanceOpening()
		}
		set.Changes = append(set.Changes, c)
	}
	return set
}
