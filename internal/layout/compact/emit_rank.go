package compact

import (
	"encoding/binary"

	"github.com/varvedb/varve/internal/layout"
	"github.com/varvedb/varve/store/entity"
)

// ranks makes the ranks of versions in an order: strings of bytes that compare as the versions are sorted, so that
// neither the number of attributes nor their kinds matter to those who compare them. A rank is, of each attribute, a
// byte that is higher when it is missing and the value; then what decides ties.
type ranks struct {
	has  []matcher // of each attribute, which append its value
	rank []byte    // that is being made
}

func newRanks(order []layout.Order, n *names) *ranks {
	r := &ranks{}
	for _, o := range order {
		if o.Kind == entity.Numeric {
			r.has = append(r.has, numberMatcher(o.Name, n, func(number uint64) bool {
				r.rank = appendNumberRank(r.rank, number, o.Desc)
				return true
			}))
		} else {
			r.has = append(r.has, textMatcher(o.Name, n, func(text []byte) bool {
				r.rank = appendTextRank(r.rank, text, o.Desc)
				return true
			}))
		}
	}
	return r
}

// of returns the rank of a version, which is good until the next call.
func (r *ranks) of(v *version, rec *record) []byte {
	r.rank = r.rank[:0]
	for _, has := range r.has {
		if !has(v, rec) {
			r.rank = append(r.rank, rankMissing)
		}
	}
	r.rank = appendTieRank(r.rank, rec.sequence, &v.key)
	return r.rank
}

// rankOf returns the rank of a position, or nil.
func rankOf(order []layout.Order, pos *layout.Position) (rank []byte) {
	if pos == nil {
		return nil
	}
	for i, o := range order {
		switch v := pos.Values[i]; {
		case v.Missing:
			rank = append(rank, rankMissing)
		case o.Kind == entity.Numeric:
			rank = appendNumberRank(rank, v.Value.Number, o.Desc)
		default:
			rank = appendTextRank(rank, []byte(v.Value.Text), o.Desc)
		}
	}
	return appendTieRank(rank, pos.Sequence, &pos.Key)
}

// The first byte of an attribute in a rank.
const (
	rankPresent = 0
	rankMissing = 1
)

func appendNumberRank(rank []byte, number uint64, desc bool) []byte {
	if desc {
		number = ^number
	}
	return binary.BigEndian.AppendUint64(append(rank, rankPresent), number)
}

// textEnd ends a text in a rank.
const textEnd = "\x00\x01"

// appendTextRank ends text with 0, 1 and spells a 0 within as 0, 2, so that a string comes
// before those that begin with it, whatever follows in the rank.
func appendTextRank(rank, text []byte, desc bool) []byte {
	rank = append(rank, rankPresent)
	start := len(rank)
	for _, b := range text {
		if rank = append(rank, b); b == 0 {
			rank = append(rank, 2)
		}
	}
	rank = append(rank, textEnd...)
	if desc {
		for i := start; i < len(rank); i++ {
			rank[i] = ^rank[i]
		}
	}
	return rank
}

// appendTieRank appends what decides ties: newest first, then by key.
func appendTieRank(rank []byte, sequence uint64, key *entity.Key) []byte {
	return append(binary.BigEndian.AppendUint64(rank, ^sequence), key[:]...)
}
