package compact

import (
	"bytes"
	"context"
	"encoding/binary"
	"iter"
	"slices"

	"github.com/varvedb/varve/internal/layout"
	"github.com/varvedb/varve/store/entity"
)

// output makes entities of versions and yields them. With payloads it reads those
// of several versions at once.
type output struct {
	v          *view
	attributes bool // attributes are asked for
	content    bool // payloads are
	yield      func(*entity.Entity, error) bool
	waiting    []*version
	bytes      uint64 // of the payloads of these
}

// outputBytes bounds the payloads that are read at once.
const outputBytes = 1 << 20

// add yields a version, now or with later ones. It reports whether the caller
// wants more; an error is yielded and ends the output.
func (o *output) add(ctx context.Context, r *version, size uint64) bool {
	o.waiting = append(o.waiting, r)
	if o.bytes += size; o.content && o.bytes < outputBytes && len(o.waiting) < 2*lookupCost {
		return true
	}
	return o.flush(ctx)
}

// flush yields the versions that wait.
func (o *output) flush(ctx context.Context) bool {
	list := o.waiting
	o.waiting, o.bytes = nil, 0
	var contents map[int64][]byte
	if o.content && len(list) > 0 {
		var err error
		if contents, err = o.v.contents(ctx, list); err != nil {
			o.yield(nil, err)
			return false
		}
	}
	dictionary := o.v.names.list()
	for _, r := range list {
		e, err := r.entity(dictionary, o.attributes)
		if err != nil {
			o.yield(nil, err)
			return false
		}
		e.Content = contents[r.content]
		if !o.yield(e, nil) {
			return false
		}
	}
	return true
}

// sorter yields matches in the order of attributes. It goes through the values of
// the first attribute in their order, as postings have them, and reads the
// entities that have them, as far as the limit asks. Entities with the same value
// it sorts or, when they are many, goes through the values of the next attribute.
// When few candidates are left it reads them all.
type sorter struct {
	*plan
	v     *view
	req   layout.Request
	ranks *ranks
	after []byte   // rank at which the page before ended
	log   []ranked // matches of the overlay that are not yielded yet
	last  []byte   // rank of the last match that came from the tables
	left  *int     // as scan has it
	yield func(match, error) bool

	spent int // versions that were read
}

// ranked is a match with its rank.
type ranked struct {
	match
	rank []byte
}

func byRank(a, b ranked) int { return bytes.Compare(a.rank, b.rank) }

// sorted yields the versions that match a plan in the order of attributes. Left is
// as scan has it.
func (v *view) sorted(ctx context.Context, p *plan, req layout.Request, left *int) iter.Seq2[match, error] {
	return func(yield func(match, error) bool) {
		x := &sorter{
			plan: p, v: v, req: req, ranks: newRanks(req.Order, v.names), after: rankOf(req.Order, req.After),
			left: left, yield: yield,
		}

		// Sort the matches of the overlay.
		for _, r := range v.unmerged(req.Expr, false) {
			if !r.visible(v.at) {
				continue
			}
			m, ok, err := x.rank(r, nil)
			if err == nil {
				err = ctx.Err() // as in scan
			}
			if err != nil {
				x.fail(err)
				return
			}
			if ok {
				x.log = append(x.log, m)
			}
		}
		slices.SortFunc(x.log, byRank)

		// Yield the matches of the tables, and between them those of the overlay.
		if !x.column(ctx, p.filter, nil, 0) {
			return
		}
		for _, m := range x.log {
			if !yield(m.match, nil) {
				return
			}
		}
	}
}

// fail yields an error and returns false.
func (x *sorter) fail(err error) bool {
	x.yield(match{}, err)
	return false
}

// rank returns a version with its rank, or false when it does not match, was
// yielded already, or its rank does not begin with the given attributes.
func (x *sorter) rank(r *version, begin []byte) (m ranked, ok bool, err error) {
	rec, err := parse(r.data)
	if err != nil || !x.match(r, &rec) {
		return m, false, err
	}
	rank := x.ranks.of(r, &rec)
	if bytes.Compare(rank, x.after) <= 0 || bytes.Compare(rank, x.last) <= 0 || !bytes.HasPrefix(rank, begin) {
		return m, false, nil
	}
	return ranked{match{r, rec}, slices.Clone(rank)}, true, nil
}

// emit yields matches of the tables, which are sorted, and before each of them the
// matches of the overlay with lower ranks.
func (x *sorter) emit(list ...ranked) bool {
	for _, m := range list {
		for len(x.log) > 0 && byRank(x.log[0], m) < 0 {
			next := x.log[0]
			x.log = x.log[1:]
			if !x.yield(next.match, nil) {
				return false
			}
		}
		x.last = m.rank
		if !x.yield(m.match, nil) {
			return false
		}
	}
	return true
}

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
// before every longer string that begins with it.
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
