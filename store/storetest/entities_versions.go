package storetest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
)

// runVersions checks every field of the versions that operations make.
func runVersions(t *testing.T, h Harness, layout string) {
	l := newLedger(t, h, layout)
	t.Run("life of an entity", func(t *testing.T) { testLife(t, l) })
	t.Run("change owner and extend", func(t *testing.T) { testOwnerAndExtend(t, l) })
	t.Run("second life", func(t *testing.T) { testSecondLife(t, l) })
	t.Run("synthetic attributes", func(t *testing.T) { testSynthetic(t, l) })
	t.Run("for ever", func(t *testing.T) { testForEver(t, l) })
	t.Run("empty blocks and gaps", func(t *testing.T) { testEmptyBlocks(t, l) })
	t.Run("operations are not kept", func(t *testing.T) { testNotKept(t, l) })
	t.Run("many operations", func(t *testing.T) { testManyOperations(t, l) })
	t.Run("extend adds", func(t *testing.T) { testExtendAdds(t, h, layout) })
}

// testLife follows one entity through every operation.
func testLife(t *testing.T, l *ledger) {
	key := keyOf("life")
	created := l.apply(t, on("other", opCreate(1)), on("other 2", opCreate(1)), on("other 3", opCreate(1)),
		on("life", opCreate(50, owner(alice), content("text/plain", "one"), text("t", "x"), number("n", 1))))
	first := store.Entity{
		Key: key, Creator: alice, Owner: alice, ContentType: "text/plain", Content: []byte("one"),
		StringAttributes: map[string]string{"t": "x"}, NumericAttributes: map[string]uint64{"n": 1},
		Sequence: created<<32 | 1<<16, LastModifiedAtBlock: created, Expiration: created + 50,
	}
	requireSame(t, &first, l.get(t, key))

	updated := l.apply(t, on("life", opUpdate(20, owner(bob), content("", "two"), text("u", ""))))
	second := first
	second.Owner, second.ContentType, second.Content = bob, "", []byte("two")
	second.StringAttributes, second.NumericAttributes = map[string]string{"u": ""}, nil
	second.LastModifiedAtBlock, second.Expiration = updated, updated+20
	requireSame(t, &second, l.get(t, key))

	extended := l.apply(t, on("life", opExtend(40)))
	third := second
	third.LastModifiedAtBlock, third.Expiration = extended, extended+40
	requireSame(t, &third, l.get(t, key))

	given := l.apply(t, on("life", opOwner(carol)))
	fourth := third
	fourth.LastModifiedAtBlock, fourth.Owner = given, carol
	requireSame(t, &fourth, l.get(t, key))

	l.apply(t, on("life", opDelete))
	for block, want := range map[uint64]store.Entity{created: first, updated: second, extended: third, given: fourth} {
		l.view(t, block, func(s *store.Snapshot) {
			e, err := s.Get(t.Context(), key)
			require.NoError(t, err)
			requireSame(t, &want, e)
		})
	}
}

// testOwnerAndExtend: in one block both keep what they do not change.
func testOwnerAndExtend(t *testing.T, l *ledger) {
	created := l.apply(t, on("given", opCreate(50, content("c", "payload"), text("t", "x"))))
	block := l.apply(t, on("given", opOwner(bob)), on("given", opExtend(7)))
	requireSame(t, &store.Entity{
		Key: keyOf("given"), Creator: alice, Owner: bob, ContentType: "c", Content: []byte("payload"),
		StringAttributes: map[string]string{"t": "x"},
		Sequence:         created << 32, LastModifiedAtBlock: block, Expiration: block + 7,
	}, l.get(t, keyOf("given")))
}

// testSecondLife: a key that is created again has nothing of its first life.
func testSecondLife(t *testing.T, l *ledger) {
	l.apply(t, on("again", opCreate(50, owner(alice), content("c", "payload"), text("t", "x"), number("n", 1))))
	block := l.apply(t, on("again", opDelete), on("again", opCreate(9, owner(bob), number("m", 2))))
	requireSame(t, &store.Entity{
		Key: keyOf("again"), Creator: bob, Owner: bob, NumericAttributes: map[string]uint64{"m": 2},
		Sequence: block<<32 | 1, LastModifiedAtBlock: block, Expiration: block + 9,
	}, l.get(t, keyOf("again")))
}

// testSynthetic asks for each synthetic attribute by query, after the creation
// and after an update by another account.
func testSynthetic(t *testing.T, l *ledger) {
	key := keyOf("synthetic")
	op := on("synthetic", opCreate(50, owner(alice)))
	op.TxIndex, op.OpIndex = 65535, 7
	l.applyBlocks(t, store.Block{Number: l.head + 1, Ops: ops{op}})
	created := l.head
	check := func(owner store.Address, modified, expiration uint64) {
		t.Helper()
		finds := map[string]query.Value{
			"$key":                 query.Text(key.String()),
			"$owner":               query.Text(owner.String()),
			"$creator":             query.Text(alice.String()),
			"$expiration":          query.Number(expiration),
			"$createdAtBlock":      query.Number(created),
			"$lastModifiedAtBlock": query.Number(modified),
			"$sequence":            query.Number(created<<32 | 65535<<16 | 7),
			"$txIndex":             query.Number(65535),
			"$opIndex":             query.Number(7),
		}
		for name, value := range finds {
			q := query.And{Terms: []query.Expr{
				query.Compare{Name: "$key", Op: query.Equal, Value: query.Text(key.String())},
				query.Compare{Name: name, Op: query.Equal, Value: value},
			}}
			require.Len(t, l.find(t, q, nil), 1, "%s", q)
		}
	}
	check(alice, created, created+50)
	updated := l.apply(t, on("synthetic", opUpdate(9, owner(bob))))
	check(bob, updated, updated+9)
	given := l.apply(t, on("synthetic", opOwner(carol)))
	check(carol, given, updated+9)
}

// testForEver: arithmetic on blocks stops at MaxBlock.
func testForEver(t *testing.T, l *ledger) {
	below := entity.MaxBlock - (l.head + 1) - 1
	l.apply(t,
		on("ever most", opCreate(^uint64(0))), on("ever max", opCreate(entity.MaxBlock)),
		on("ever exact", opCreate(below+1)), on("ever below", opCreate(below)),
		on("ever extended", opCreate(5)), on("ever updated", opCreate(5)))
	l.apply(t, on("ever extended", opExtend(^uint64(0))), on("ever updated", opUpdate(1<<63)))
	for name, want := range map[string]uint64{
		"ever most": entity.MaxBlock, "ever max": entity.MaxBlock, "ever exact": entity.MaxBlock,
		"ever below": entity.MaxBlock - 1, "ever extended": entity.MaxBlock, "ever updated": entity.MaxBlock,
	} {
		require.Equal(t, want, l.get(t, keyOf(name)).Expiration, name)
	}
	q := query.Compare{Name: "$expiration", Op: query.Equal, Value: query.Number(entity.MaxBlock)}
	require.Len(t, l.find(t, q, nil), 5)
	l.apply(t, on("ever most", opDelete), on("ever below", opDelete))
	_, err := l.at(t, store.Head).Get(t.Context(), keyOf("ever most"))
	require.ErrorIs(t, err, store.ErrNotFound)
}

// testEmptyBlocks: an empty block advances the head and changes nothing else,
// and numbers may be left out.
func testEmptyBlocks(t *testing.T, l *ledger) {
	before := headOf(t, l.ents)
	applied, err := l.ents.Apply(t.Context(), store.Block{Number: l.head + 10})
	require.NoError(t, err)
	l.head += 10
	require.Equal(t, store.Applied{Head: store.BlockHead{Block: l.head, Digest: before.Digest}}, applied)
	head := headOf(t, l.ents)
	require.Equal(t, applied.Head, head)

	l.view(t, l.head-5, func(s *store.Snapshot) { require.Equal(t, l.head-5, s.Block()) })
	applied, err = l.ents.Apply(t.Context(), newBlock(l.head+1, on("counted", opCreate(9)), on("counted 2", opCreate(0)),
		on("counted 3", opCreate(9)), on("counted 3", opDelete)))
	require.NoError(t, err)
	l.head++
	require.Equal(t, 2, applied.Changes)
	require.NotEqual(t, head.Digest, applied.Head.Digest)
}

// testNotKept: what the caller does with a block afterwards does not matter.
func testNotKept(t *testing.T, l *ledger) {
	op := on("kept", opCreate(50, content("c", "payload"), text("t", "x"), number("n", 1)))
	l.apply(t, op)
	op.Content[0], op.StringAttributes["t"], op.NumericAttributes["n"] = 'X', "y", 2
	e := l.get(t, op.Key)
	require.Equal(t, "payload x 1", string(e.Content)+" "+e.StringAttributes["t"]+" "+string('0'+rune(e.NumericAttributes["n"])))
	e.Content[0], e.StringAttributes["t"] = 'X', "y"
	require.Equal(t, "payload", string(l.get(t, op.Key).Content))
}

// testManyOperations: more keys in one block than any list in one statement.
func testManyOperations(t *testing.T, l *ledger) {
	const n = 1100
	block := func(op store.Op) store.Block {
		b := store.Block{Number: l.head + 1}
		for i := range n {
			op.Key, op.TxIndex = store.Key{0: 0xee, 30: byte(i >> 8), 31: byte(i)}, uint32(i)
			b.Ops = append(b.Ops, op)
		}
		return b
	}
	many := query.Compare{Name: "many", Op: query.Equal, Value: query.Text("yes")}
	count := func() int {
		list := l.find(t, many, &store.QueryOptions{Parts: store.Content})
		for _, e := range list {
			require.Equal(t, "payload", string(e.Content))
		}
		return len(list)
	}
	l.applyBlocks(t, block(opCreate(50, text("many", "yes"), content("c", "payload"))))
	require.Equal(t, n, count())
	l.applyBlocks(t, block(opOwner(bob)))
	require.Equal(t, n, count())
	l.applyBlocks(t, block(opExpire))
	require.Zero(t, count())
}

// testExtendAdds: the other rule of ExtendBTL is recorded in the store.
func testExtendAdds(t *testing.T, h Harness, layout string) {
	url := h.NewURL(t)
	adds := store.EntityOptions{Layout: layout, ExtendAdds: true}
	db := h.open(t, url, nil)
	ents, err := db.Entities(t.Context(), adds)
	require.NoError(t, err)
	l := &ledger{t: t, h: h, url: url, layout: layout, db: db, ents: ents, head: firstBlock}
	created := l.apply(t, on("sum", opCreate(10)))
	l.apply(t, on("sum", opExtend(5)))
	require.Equal(t, created+15, l.get(t, keyOf("sum")).Expiration)
	l.reopen(t)
	l.apply(t, on("sum", opExtend(5)), on("sum", opExtend(^uint64(0)-100)))
	require.EqualValues(t, entity.MaxBlock, l.get(t, keyOf("sum")).Expiration)

	plain := newLedger(t, h, layout)
	require.NoError(t, plain.db.Close())
	plain.db = h.open(t, plain.url, nil)
	_, err = plain.db.Entities(t.Context(), adds)
	require.ErrorIs(t, err, store.ErrLayout)
}
