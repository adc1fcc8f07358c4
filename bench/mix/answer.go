package mix

import (
	"fmt"
	"hash/maphash"
	"iter"
	"reflect"
	"slices"

	"github.com/varvedb/varve/internal/splitmix"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
)

// topic is the subject of a question.
type topic uint8

const (
	byStatus   topic = iota // with a status
	byType                  // of a type
	byProposal              // for a proposal
	byChunk                 // with a successor
	byCreator
	byKey    // one entity
	byGPU    // with more GPUs than a number
	byWindow // last modified in [from, to)
	byValue  // with a value of the sample
)

// attrGPU is the numeric attribute that queries ask for.
const attrGPU = "allocatable_gpu"

const (
	typeVote      = "vote"
	typeProposal  = "proposal"
	statusPending = "pending"
	statusActive  = "active"
)

// absent is the value to ask for if no entity offers one.
const absent = "no such value"

// asked are the attributes by topic. The first value of each occurs in no
// entity; queries may name the others before any entity has them.
var asked = [...]struct {
	name   string
	values []string
}{
	byStatus:   {"status", []string{absent, statusPending, statusActive}},
	byType:     {"type", []string{absent, typeVote, typeProposal}},
	byProposal: {"proposalKey", []string{absent}},
	byChunk:    {"nextBlockId", []string{absent}},
	byCreator:  {entity.AttrCreator, []string{entity.Address{0xff, 0xff, 0xff, 0xff}.String()}},
}

// question is an Op in the oracle's terms.
type question struct {
	topic    topic
	number   uint32 // of the value, in the index or the sample; of GPUs
	typ      uint32 // for a question with a value: the type that is wanted too; 0 is any
	from, to uint64 // byWindow
}

// expr returns the question as a query.
func (o *Oracle) expr(q question) query.Expr {
	switch q.topic {
	case byGPU:
		return query.Compare{Name: attrGPU, Op: query.Greater, Value: query.Number(uint64(q.number))}
	case byWindow:
		block := func(op query.CompareOp, n uint64) query.Expr {
			return query.Compare{Name: entity.AttrLastModifiedAtBlock, Op: op, Value: query.Number(n)}
		}
		return query.And{Terms: []query.Expr{block(query.GreaterOrEqual, q.from), block(query.Less, q.to)}}
	case byValue:
		v := o.sample.values[q.number]
		return query.Compare{Name: v.of.name, Op: query.Equal, Value: v.value}
	}
	expr := equal(asked[q.topic].name, o.texts[q.topic].values[q.number])
	if q.typ == 0 {
		return expr
	}
	return query.And{Terms: []query.Expr{expr, equal(asked[byType].name, o.texts[byType].values[q.typ])}}
}

func equal(name, value string) query.Expr {
	return query.Compare{Name: name, Op: query.Equal, Value: query.Text(value)}
}

// matches reports whether a visible version is an answer.
func (o *Oracle) matches(q *question, v *version) bool {
	switch q.topic {
	case byGPU:
		return v.gpu > q.number+1
	case byWindow:
		return q.from <= uint64(v.from) && uint64(v.from) < q.to
	case byValue:
		return slices.Contains(o.sample.numbersOf(v), q.number)
	}
	return v.values[q.topic] == q.number && (q.typ == 0 || v.values[byType] == q.typ)
}

// answer returns the keys that answer a question at a block, newest first, up
// to a limit; 0 is no limit.
func (o *Oracle) answer(q question, block uint64, limit int) (found []entity.Key) {
	for l := range o.candidates(&q) {
		if v := o.at(l, block); v != nil && o.matches(&q, v) {
			if found = append(found, o.lives[l].key); len(found) == limit {
				break
			}
		}
	}
	return found
}

// candidates returns lives, newest first. All matches of a question are among
// them.
func (o *Oracle) candidates(q *question) iter.Seq[int32] {
	var lives []int32 // oldest first
	switch q.topic {
	case byWindow:
		changed, all := o.changed(q.from, q.to)
		if !all {
			// Search all entities, because the entities that were created in
			// the window come first and usually suffice.
			return func(yield func(int32) bool) {
				for l := o.born(q.to-1) - 1; l >= 0 && yield(int32(l)); l-- {
				}
			}
		}
		lives = changed
	case byGPU:
		lives = o.gpus
	case byValue:
		lives = o.sample.values[q.number].lives
	default:
		lives = o.texts[q.topic].lists[q.number]
	}
	return func(yield func(int32) bool) {
		for _, l := range slices.Backward(lives) {
			if !yield(l) {
				return
			}
		}
	}
}

// Check implements Reads.
func (m *base) Check(op Op, a Answer) error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if a.Block > m.head {
		return fmt.Errorf("check %s at block %d: the oracle is at block %d: advance it before the store applies a block", op.Kind, a.Block, m.head)
	}
	compare := m.compareKeys
	if op.ask.topic == byKey {
		compare = m.compareEntity
	}
	if wrong := compare(op, a); wrong != "" {
		return fmt.Errorf("%w: %s (%s, limit %d) at block %d: %s", ErrMismatch, op.Kind, op.Expr, op.Limit, a.Block, wrong)
	}
	return nil
}

// compareKeys describes how keys differ from the right ones; "" if they do not.
func (o *Oracle) compareKeys(op Op, a Answer) string {
	want := o.answer(op.ask, a.Block, op.Limit)
	if slices.Equal(a.Keys, want) {
		return ""
	}
	at := 0
	for at < min(len(want), len(a.Keys)) && a.Keys[at] == want[at] {
		at++
	}
	return fmt.Sprintf("%d entities, want %d; right up to position %d, then %v, want %v",
		len(a.Keys), len(want), at, a.Keys[at:min(at+1, len(a.Keys))], want[at:min(at+1, len(want))])
}

// compareEntity describes how an entity differs from the right one; "" if it
// does not.
func (o *Oracle) compareEntity(op Op, a Answer) string {
	l, v := o.lookup(op.Key, a.Block)
	switch e := a.Entity; {
	case v == nil && e == nil && a.Count == 0:
		return ""
	case v == nil:
		return fmt.Sprintf("%d entities, want none", a.Count)
	case e == nil || a.Count != 1:
		return fmt.Sprintf("%d entities, want one", a.Count)
	case e.Key != op.Key:
		return fmt.Sprintf("the key is %s", e.Key)
	}
	e, h := a.Entity, newHashes(a.Entity)
	got, want := *e, *o.metadata(l, v)
	got.ContentType, got.Content, got.StringAttributes, got.NumericAttributes = "", nil, nil, nil
	switch {
	case op.Parts&store.Metadata != 0 && !reflect.DeepEqual(got, want):
		return fmt.Sprintf("%+v, want %+v", got, want)
	case op.Parts&store.Attributes != 0 && h.attributes != v.attributes:
		return fmt.Sprintf("other attributes or content type: %q, %q, %v", e.ContentType, e.StringAttributes, e.NumericAttributes)
	case op.Parts&store.Content != 0 && (h.content != v.content || h.size != v.size):
		return fmt.Sprintf("other content, of %d bytes, want %d", h.size, v.size)
	}
	return ""
}

// index lists, for each value of an attribute, the lives that ever had it,
// oldest first. Values are numbered from 1 in the order of their first use. The
// version at a block decides whether a life has the value there.
type index struct {
	numbers map[string]uint32
	values  []string
	lists   [][]int32
}

// newIndex returns an index with number 0 unused, and with the values that
// queries may name before any entity has them.
func newIndex(values []string) index {
	x := index{numbers: map[string]uint32{}}
	for _, value := range values {
		x.number(value)
	}
	return x
}

// number returns the number of a value, a new one if need be.
func (x *index) number(value string) uint32 {
	n, ok := x.numbers[value]
	if !ok {
		n = uint32(len(x.values))
		x.numbers[value] = n
		x.values = append(x.values, value)
		x.lists = append(x.lists, nil)
	}
	return n
}

// post adds a life to the list of a value; number 0 is no value.
func (x *index) post(number uint32, l int32) {
	if number > 0 {
		x.lists[number] = insert(x.lists[number], l)
	}
}

// insert adds a number to a sorted list unless it is there. It is almost always
// the highest.
func insert(list []int32, l int32) []int32 {
	if n := len(list); n == 0 || list[n-1] < l {
		return append(list, l)
	}
	if i, found := slices.BinarySearch(list, l); !found {
		return slices.Insert(list, i, l)
	}
	return list
}

// hashes replace the parts of an entity that are not kept. They are never
// stored.
type hashes struct {
	attributes uint64 // with the content type
	content    uint64
	size       uint32 // of the content
}

var seed = maphash.MakeSeed()

// newHashes takes attributes in any order: hashes are added up, so nothing is
// sorted, and a wrong attribute changes the sum like a random number.
func newHashes(e *entity.Entity) hashes {
	sum := splitmix.Scramble(maphash.String(seed, e.ContentType))
	for name, value := range e.StringAttributes {
		sum += splitmix.Scramble(maphash.String(seed, name) ^ splitmix.Scramble(maphash.String(seed, value)))
	}
	for name, value := range e.NumericAttributes {
		sum += splitmix.Scramble(maphash.String(seed, name) ^ splitmix.Scramble(value+1)<<1)
	}
	return hashes{sum, maphash.Bytes(seed, e.Content), uint32(len(e.Content))}
}
