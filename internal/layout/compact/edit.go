package compact

import (
	"cmp"
	"context"
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
	if k.past != other.past {
		if k.past {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(k.attr, other.attr), strings.Compare(k.value, other.value), cmp.Compare(k.chunk, other.chunk))
}

// editGroup is the edits of one stored set, as positions in a list of edits.
type editGroup struct {
	setKey
	first, last, n int
	final          bool
}

// grouped is edits by the set that they change, in the order of the tables.
type grouped struct {
	edits  []edit
	next   []int // of each edit: the next one of its group
	groups []editGroup
}

// group puts edits of one set together and sorts the sets: there are fewer of
// them than of edits.
func group(edits []edit) grouped {
	g := grouped{edits: edits, next: make([]int, len(edits))}
	index := make(map[setKey]int, len(edits)/2)
	for i := range edits {
		k := setKey{edits[i].past, edits[i].term, chunkOf(edits[i].id)}
		n, ok := index[k]
		if !ok {
			index[k] = len(g.groups)
			g.groups = append(g.groups, editGroup{setKey: k, first: i, last: i, n: 1, final: edits[i].last})
			continue
		}
		at := &g.groups[n]
		at.final = at.final || edits[i].last
		g.next[at.last] = i
		at.last = i
		at.n++
	}
	slices.SortFunc(g.groups, func(a, b editGroup) int { return a.compare(&b.setKey) })
	return g
}

// apply does a group's edits on a set.
func (g *grouped) apply(n int, c *chunk) {
	at := g.groups[n].first
	for range g.groups[n].n {
		if e := &g.edits[at]; e.add {
			c.set(offsetOf(e.id))
		} else {
			c.clear(offsetOf(e.id))
		}
		at = g.next[at]
	}
}

// set is a stored set of ids as it is to become.
type set struct {
	setKey
	ids []byte // encoded; empty: it is deleted
}

// resolve reads the sets that edits change and works out what becomes of them:
// sets to write in any number of steps, and those to write in the last.
func (l *Layout) resolve(ctx context.Context, q driver.Querier, g grouped) (sets, final []set, err error) {
	sets = make([]set, 0, len(g.groups))
	chunks := make([]chunk, min(resolvePage, len(g.groups)))
	for from := 0; from < len(g.groups); {
		to := from + 1
		for to < len(g.groups) && to-from < resolvePage && g.groups[to].past == g.groups[from].past {
			to++
		}
		clear(chunks[:to-from])
		if err := l.readSets(ctx, q, g.groups[from:to], chunks); err != nil {
			return nil, nil, err
		}
		for n := from; n < to; n++ {
			c := &chunks[n-from]
			g.apply(n, c)
			s := set{g.groups[n].setKey, c.encode()}
			if g.groups[n].final {
				final = append(final, s)
			} else {
				sets = append(sets, s)
			}
		}
		from = to
	}
	return sets, final, nil
}

// resolvePage is how many sets are read at once.
const resolvePage = 256

// readSets reads the stored sets of groups of one table.
func (l *Layout) readSets(ctx context.Context, q driver.Querier, groups []editGroup, chunks []chunk) error {
	args := make([]any, 0, 3*len(groups))
	for i := range groups {
		args = append(args, groups[i].attr, []byte(groups[i].value), groups[i].chunk)
	}
	return l.eachQuery(ctx, q, groups[0].table()+"_postings_list", 3, args, nil, func(rows driver.Rows) error {
		key := setKey{past: groups[0].past}
		var value, ids []byte
		if err := rows.Scan(&key.attr, &value, &key.chunk, &ids); err != nil {
			return err
		}
		key.value = string(value)
		n, ok := slices.BinarySearchFunc(groups, &key, func(g editGroup, k *setKey) int { return g.compare(k) })
		if !ok {
			return nil
		}
		return chunks[n].merge(ids)
	})
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
			puts = append(puts, s.attr, []byte(s.value), s.chunk, s.ids)
		} else {
			deletes = append(deletes, s.attr, []byte(s.value), s.chunk)
		}
	}
	if err := l.eachExec(ctx, tx, "delete_"+table+"_postings", 3, deletes); err != nil {
		return err
	}
	return l.eachExec(ctx, tx, "put_"+table+"_postings", 4, puts)
}
