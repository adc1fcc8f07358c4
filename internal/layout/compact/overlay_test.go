package compact

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
)

// loggedView is a view whose log has changes of entities with a type, a number
// in a tenth of them, and a text in a few.
func loggedView(t *testing.T, rnd *rand.Rand) *view {
	const blocks, keys = 60, 900
	names, ids, next := newNames(), map[entity.Key]int64{}, int64(1)
	number := func(kind nameKind, text string) int64 {
		id, _ := names.add(kind, text)
		return id
	}
	number(stringName, "type")
	number(numberName, "n")
	number(stringName, "text")
	c := &chain{}
	for block := int64(11); block <= 10+blocks; block++ {
		changes := map[entity.Key]change{}
		for range rnd.IntN(40) {
			key := entity.Key{}
			binary.BigEndian.PutUint16(key[:], uint16(rnd.IntN(keys)))
			if _, ok := changes[key]; ok {
				continue
			}
			ch := change{key: key, oldID: ids[key], oldFrom: 1}
			switch rnd.IntN(8) {
			case 0: // ends
				delete(ids, key)
			default: // is changed, or ends and another begins
				if ch.newID = ids[key]; ch.newID == 0 || rnd.IntN(4) == 0 {
					ch.newID = next
					next++
				}
				ids[key] = ch.newID
				e := &entity.Entity{Key: key, StringAttributes: map[string]string{"type": string("abcd"[rnd.IntN(4)])}, NumericAttributes: map[string]uint64{}}
				if rnd.IntN(10) == 0 {
					e.NumericAttributes["n"] = rnd.Uint64N(5)
				}
				if rnd.IntN(30) == 0 {
					e.StringAttributes["text"] = strings.Repeat("x", rnd.IntN(3)*20) // the empty value, too
				}
				ch.next = version{id: ch.newID, key: key, from: block, to: 1000, expires: 1000, data: pack(nil, e, number)}
			}
			changes[key] = ch
		}
		n := newNode(block, tip{}, nil, c.nodes)
		for _, ch := range changes {
			n.changes = append(n.changes, ch)
			n.byKey[ch.key] = len(n.changes) - 1
		}
		c.nodes = append(c.nodes, newNode(block, tip{}, n.changes, c.nodes))
	}
	v := &view{chain: c, names: names, p: progress{merged: 10, last: 10 + blocks, names: firstName + 2, nextID: next}}
	v.move(uint64(10 + blocks - rnd.IntN(3)))
	require.Greater(t, len(v.overlay().live), minCandidates)
	return v
}

// terms of which random queries are made, with %d for a small number
var logTerms = []string{
	`type = "a"`, `type != "a"`, `type IN ("a", "b")`, `type NOT IN ("a", "b", "c")`, `type ~ "[ab]"`, `type !~ "a*"`,
	`n = %d`, `n != %d`, `n > %d`, `n <= %d`, `n IN (1, %d)`, `text = ""`, `text > ""`, `text ~ "x*"`, `missing = 1`, `missing != %d`,
	`$key = "0x000%d00000000000000000000000000000000000000000000000000000000000"`,
	`$lastModifiedAtBlock > 2%d`, `$lastModifiedAtBlock <= 3%d`, `$lastModifiedAtBlock = 4%d`, `$expiration > %d`, `!(type = "a")`, `*`,
}

func randomQuery(t *testing.T, rnd *rand.Rand, depth int) query.Expr {
	if depth == 0 || rnd.IntN(4) == 0 {
		text := logTerms[rnd.IntN(len(logTerms))]
		if strings.Contains(text, "%d") {
			text = fmt.Sprintf(text, rnd.IntN(10))
		}
		e, err := query.Parse(text)
		require.NoError(t, err, text)
		return e
	}
	terms := make([]query.Expr, 2+rnd.IntN(2))
	for i := range terms {
		terms[i] = randomQuery(t, rnd, depth-1)
	}
	if rnd.IntN(3) == 0 {
		return query.Or{Terms: terms}
	}
	return query.And{Terms: terms}
}

// TestUnmerged: every match in the log is among the versions that are compared,
// in the order of ids and once.
func TestUnmerged(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 7))
	matches := 0
	for range 8 {
		v := loggedView(t, rnd)
		for range 300 {
			e := randomQuery(t, rnd, 2)
			got := v.unmerged(e, rnd.IntN(2) == 0)
			require.True(t, slices.IsSortedFunc(got, func(a, b *version) int { return int(b.id - a.id) }))
			require.Len(t, slices.Compact(slices.Clone(got)), len(got))
			match := newMatcher(e, v.names)
			for _, r := range v.overlay().live {
				rec, err := parse(r.data)
				require.NoError(t, err)
				if match(r, &rec) {
					require.True(t, slices.Contains(got, r), "%v", e)
					matches++
				}
			}
		}
	}
	require.Greater(t, matches, 5_000)
}

// TestUnmergedIsNarrow: no others are compared where an index knows the matches.
func TestUnmergedIsNarrow(t *testing.T) {
	v := loggedView(t, rand.New(rand.NewPCG(8, 8)))
	for _, text := range []string{
		`n = 3`, `n = 3 && type = "a"`, `n >= 0`, `text ~ "*"`, `missing > 1`, `$lastModifiedAtBlock >= 60 && $lastModifiedAtBlock <= 66`,
		`$lastModifiedAtBlock >= 50 && type = "b"`, `$key = "` + v.overlay().live[5].key.String() + `"`, `n = 1 || missing = 2`,
	} {
		e, err := query.Parse(text)
		require.NoError(t, err)
		match := newMatcher(e, v.names)
		for _, r := range v.unmerged(e, true) {
			rec, err := parse(r.data)
			require.NoError(t, err)
			require.True(t, match(r, &rec), text)
		}
	}
}
