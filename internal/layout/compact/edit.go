package compact

import (
	"cmp"
	"context"
	"encoding/binary"
	"maps"
	"slices"
	"strings"

	"github.com/varvedb/varve/store/driver"
)

// edit is one id that enters or leaves a posting.
type edit struct {
	term
	past bool
	id   int64
	add  bool
	last bool // only in the last step of a merge
}

// setKey names a stored set of ids.
type setKey struct {
	past bool
	term
	chunk int64
}

// table returns where the set is stored.
func (k *setKey) table() string {
	if k.past {
		return "past"
	}
	return "current"
}

// compare orders sets as the tables do. Past ones come first: an id is in one
// before it leaves the other.
func (k *setKey) compare(other *setKey) int {
	if c := (column{k.past, k.attr}).compare(column{other.past, other.attr}); c != 0 {
		return c
	}
	return cmp.Or(strings.Compare(k.value, other.value), cmp.Compare(k.chunk, other.chunk))
}

// editGroup is the edits of one stored set, as a range of a sorted list of edits.
type editGroup struct {
	setKey
	blob     []byte // the value
	from, to int
	final    bool
}

// grouped is edits by the set that they change, in the order of the tables.
type grouped struct {
	edits  []edit
	order  []place
	groups []editGroup
}

// place is where an edit is in the list, with the beginning of its value, so that
// comparing most of them needs no text.
type place struct {
	prefix uint64
	at     int32
}

// column is what edits are told apart by first.
type column struct {
	past bool
	attr int64
}

// group puts edits of one set together and sorts the sets.
func group(edits []edit) grouped {
	g := grouped{edits: edits, order: byColumn(edits), groups: make([]editGroup, 0, len(edits)/2)}
	for from := 0; from < len(g.order); {
		to := from + 1
		for to < len(g.order) && g.at(to).column() == g.at(from).column() {
			to++
		}
		slices.SortFunc(g.order[from:to], g.compare)
		from = to
	}
	size := 0
	for i := range g.order {
		e := g.at(i)
		if i > 0 && e.sameSet(g.at(i-1)) {
			last := &g.groups[len(g.groups)-1]
			last.to, last.final = i+1, last.final || e.last
			continue
		}
		size += len(e.value)
		k := setKey{e.past, e.term, chunkOf(e.id)}
		g.groups = append(g.groups, editGroup{setKey: k, from: i, to: i + 1, final: e.last})
	}
	values := make([]byte, 0, size)
	for i := range g.groups {
		start := len(values)
		values = append(values, g.groups[i].value...)
		g.groups[i].blob = values[start:len(values):len(values)]
	}
	return g
}

// at returns the edit at a place in order.
func (g *grouped) at(i int) *edit { return &g.edits[g.order[i].at] }

// byColumn puts edits in the order of their columns.
func byColumn(edits []edit) []place {
	next := map[column]int{}
	for i := range edits {
		next[edits[i].column()]++
	}
	sum := 0
	for _, c := range slices.SortedFunc(maps.Keys(next), column.compare) {
		next[c], sum = sum, sum+next[c]
	}
	order := make([]place, len(edits))
	for i := range edits {
		e := &edits[i]
		c := e.column()
		order[next[c]] = place{prefixOf(e.value), int32(i)}
		next[c]++
	}
	return order
}

func (e *edit) column() column { return column{e.past, e.attr} }

// compare orders columns as the tables do; see setKey.compare.
func (c column) compare(other column) int {
	if c.past != other.past {
		if c.past {
			return -1
		}
		return 1
	}
	return cmp.Compare(c.attr, other.attr)
}

func prefixOf(value string) uint64 {
	var b [8]byte
	copy(b[:], value)
	return binary.BigEndian.Uint64(b[:])
}

func (e *edit) sameSet(other *edit) bool {
	return e.attr == other.attr && e.past == other.past && chunkOf(e.id) == chunkOf(other.id) && e.value == other.value
}

// compare orders edits of a column as setKey.compare orders their sets, and those of
// one set as they were given.
func (g *grouped) compare(a, b place) int {
	if a.prefix != b.prefix {
		return cmp.Compare(a.prefix, b.prefix)
	}
	x, y := &g.edits[a.at], &g.edits[b.at]
	if c := strings.Compare(x.value, y.value); c != 0 {
		return c
	}
	return cmp.Or(cmp.Compare(chunkOf(x.id), chunkOf(y.id)), cmp.Compare(a.at, b.at))
}

// apply does a group's edits on a set.
func (g *grouped) apply(n int, c *chunk) {
	for i := g.groups[n].from; i < g.groups[n].to; i++ {
		if e := g.at(i); e.add {
			c.set(offsetOf(e.id))
		} else {
			c.clear(offsetOf(e.id))
		}
	}
}

// set is a stored set of ids as it is to become.
type set struct {
	setKey
	blob []byte // the value
	ids  []byte // encoded; empty: it is deleted
}

// put writes sets.
func (l *Layout) put(ctx context.Context, tx driver.Tx, sets []set) error {
	for len(sets) > 0 {
		n := 1
		for n < len(sets) && sets[n].past == sets[0].past {
			n++
		}
		if err := l.putTable(ctx, tx, sets[0].table(), sets[:n]); err != nil {
			return err
		}
		sets = sets[n:]
	}
	return nil
}

func (l *Layout) putTable(ctx context.Context, tx driver.Tx, table string, sets []set) error {
	puts := make([]any, 0, 4*len(sets))
	var deletes []any
	for i := range sets {
		s := &sets[i]
		if len(s.ids) > 0 {
			puts = append(puts, s.attr, s.blob, s.chunk, s.ids)
		} else {
			deletes = append(deletes, s.attr, s.blob, s.chunk)
		}
	}
	if err := l.eachExec(ctx, tx, "delete_"+table+"_postings", 3, deletes); err != nil {
		return err
	}
	return l.eachExec(ctx, tx, "put_"+table+"_postings", 4, puts)
}
