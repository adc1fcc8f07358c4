package model

import (
	"math"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
)

// The model is the reference for stores, so the expected answers of these tests
// are written by hand.

var (
	someKeys   = [6]entity.Key{{}, {0x10}, {0x20}, {0x30}, {0x40}, {0x50}}
	someOwners = []entity.Address{{1}, {0xab, 0xcd}}
	modelKey   = someKeys[1]
	modelOwner = someOwners[0]
	otherOwner = someOwners[1]
)

func modelOp(kind entity.Kind, btl uint64) entity.Op {
	return entity.Op{Kind: kind, Key: modelKey, BTL: btl, Owner: modelOwner, Content: []byte("payload")}
}

func modelBlockOf(number uint64, ops ...entity.Op) entity.Block {
	for i := range ops {
		ops[i].OpIndex = uint32(i)
	}
	return entity.Block{Number: number, Ops: ops}
}

// TestModelLifetimes shows at which of the blocks 10 to 15 an entity is
// visible: "." is not visible, and a letter is the block of the version, from a
// for 10.
func TestModelLifetimes(t *testing.T) {
	create, update := modelOp(entity.Create, 3), modelOp(entity.Update, 2)
	forever, dead := modelOp(entity.Create, math.MaxUint64), modelOp(entity.ExtendBTL, 0)
	extend, remove, expire := modelOp(entity.ExtendBTL, 4), modelOp(entity.Delete, 0), modelOp(entity.Expire, 0)
	give := modelOp(entity.ChangeOwner, 0)
	for _, tt := range []struct {
		name   string
		adds   bool
		blocks []entity.Block
		want   string
	}{
		{"expires by itself", false, []entity.Block{modelBlockOf(10, create)}, "aaa..."},
		{"lives for ever", false, []entity.Block{modelBlockOf(10, forever)}, "aaaaaa"},
		{"BTL 0", false, []entity.Block{modelBlockOf(10, create, dead)}, "......"},
		{"update", false, []entity.Block{modelBlockOf(10, create), modelBlockOf(11, update)}, "abb..."},
		{"create and update", false, []entity.Block{modelBlockOf(10, create, update)}, "aa...."},
		{"create and delete", false, []entity.Block{modelBlockOf(10, create, remove)}, "......"},
		{"delete", false, []entity.Block{modelBlockOf(10, create), modelBlockOf(12, remove)}, "aa...."},
		{"delete and create", false, []entity.Block{modelBlockOf(10, create), modelBlockOf(12, remove, create)}, "aaccc."},
		{"early expire", false, []entity.Block{modelBlockOf(10, create), modelBlockOf(11, expire)}, "a....."},
		{"late expire", false, []entity.Block{modelBlockOf(10, create), modelBlockOf(14, expire)}, "aaa..."},
		{"expire, then create", false, []entity.Block{modelBlockOf(10, create), modelBlockOf(13, expire, create)}, "aaaddd"},
		{"second life", false, []entity.Block{modelBlockOf(10, create), modelBlockOf(14, create)}, "aaa.ee"},
		{"extend from the block", false, []entity.Block{modelBlockOf(10, create), modelBlockOf(11, extend)}, "abbbb."},
		{"extend from the expiration", true, []entity.Block{modelBlockOf(10, create), modelBlockOf(11, extend)}, "abbbbb"},
		{"owner keeps the expiration", false, []entity.Block{modelBlockOf(10, create), modelBlockOf(12, give)}, "aac..."},
		{"update at the last block", false, []entity.Block{modelBlockOf(10, create), modelBlockOf(12, update)}, "aacc.."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := Model{ExtendAdds: tt.adds}
			for _, b := range tt.blocks {
				require.NoError(t, m.Apply(b))
			}
			if m.Head().Number < 15 {
				require.NoError(t, m.Apply(entity.Block{Number: 15}))
			}
			got := ""
			for n := uint64(10); n <= 15; n++ {
				s, err := m.At(n)
				require.NoError(t, err)
				e, err := s.Get(modelKey)
				if err != nil {
					require.ErrorIs(t, err, store.ErrNotFound)
					got += "."
					continue
				}
				got += string(rune('a' + e.LastModifiedAtBlock - 10))
			}
			require.Equal(t, tt.want, got)
		})
	}
}

// TestModelRefusals: blocks that are refused, on a key that was created at
// block 10 for 3 blocks. Nothing of them is kept.
func TestModelRefusals(t *testing.T) {
	create, update := modelOp(entity.Create, 3), modelOp(entity.Update, 2)
	extend, give := modelOp(entity.ExtendBTL, 4), modelOp(entity.ChangeOwner, 0)
	remove, expire := modelOp(entity.Delete, 0), modelOp(entity.Expire, 0)
	other := modelOp(entity.Create, 9)
	other.Key = someKeys[2]
	missing := modelOp(entity.Expire, 0)
	missing.Key = someKeys[3]
	reserved, tooHigh := other, other
	reserved.StringAttributes = map[string]string{"$x": ""}
	tooHigh.TxIndex = math.MaxUint16 + 1
	nul := other
	nul.StringAttributes = map[string]string{"a": "\x00"}
	for _, tt := range []struct {
		name  string
		block entity.Block
		want  error
		at    int // operation at fault, -1: none
	}{
		{"create a live key", modelBlockOf(12, other, create), store.ErrExists, 1},
		{"create twice", modelBlockOf(13, create, create), store.ErrExists, 1},
		{"update a dead key", modelBlockOf(13, other, update), store.ErrNotFound, 1},
		{"extend a dead key", modelBlockOf(13, extend), store.ErrNotFound, 0},
		{"give a dead key", modelBlockOf(13, give), store.ErrNotFound, 0},
		{"delete a dead key", modelBlockOf(13, remove), store.ErrNotFound, 0},
		{"expire a missing key", modelBlockOf(13, missing), store.ErrNotFound, 0},
		{"delete twice", modelBlockOf(11, remove, remove), store.ErrNotFound, 1},
		{"expire after delete", modelBlockOf(11, remove, expire), store.ErrNotFound, 1},
		{"expire twice, the first early", modelBlockOf(11, expire, expire), store.ErrNotFound, 1},
		{"the same block", modelBlockOf(10, other), store.ErrBlockOrder, -1},
		{"an earlier block", modelBlockOf(9), store.ErrBlockOrder, -1},
		{"malformed before out of order", modelBlockOf(9, reserved), store.ErrInvalid, 0},
		{"index too high", modelBlockOf(11, other, tooHigh), store.ErrInvalid, 1},
		{"number too high", modelBlockOf(1 << 32), store.ErrInvalid, -1},
		{"NUL", modelBlockOf(11, other, nul), store.ErrUnsupported, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := Model{NoNUL: true}
			require.NoError(t, m.Apply(modelBlockOf(10, create)))
			before := m.Head()
			err := m.Apply(tt.block)
			require.ErrorIs(t, err, tt.want)
			var op *entity.OpError
			if tt.at >= 0 {
				require.ErrorAs(t, err, &op)
				require.EqualValues(t, tt.at, op.OpIndex)
			}
			require.Equal(t, before, m.Head())
			s, err := m.At(store.Head)
			require.NoError(t, err)
			n, err := s.Count(nil)
			require.NoError(t, err)
			require.EqualValues(t, 1, n)
		})
	}
}

// TestModelFields: which fields each operation changes.
func TestModelFields(t *testing.T) {
	create := entity.Op{
		Kind: entity.Create, Key: modelKey, TxIndex: 2, OpIndex: 3, BTL: 10, Owner: modelOwner, ContentType: "a", Content: []byte("one"),
		StringAttributes: map[string]string{"s": "x"}, NumericAttributes: map[string]uint64{"n": 1},
	}
	update := entity.Op{Kind: entity.Update, Key: modelKey, BTL: 50, Owner: otherOwner, ContentType: "b", StringAttributes: map[string]string{"t": "y"}}
	m := Model{}
	last := func() entity.Entity {
		s, err := m.At(store.Head)
		require.NoError(t, err)
		e, err := s.Get(modelKey)
		require.NoError(t, err)
		return *e
	}
	require.NoError(t, m.Apply(entity.Block{Number: 5, Ops: []entity.Op{create}}))
	want := entity.Entity{
		Key: modelKey, Creator: modelOwner, Owner: modelOwner, ContentType: "a", Content: []byte("one"),
		StringAttributes: create.StringAttributes, NumericAttributes: create.NumericAttributes,
		Sequence: 5<<32 | 2<<16 | 3, LastModifiedAtBlock: 5, Expiration: 15,
	}
	require.Equal(t, want, last())

	require.NoError(t, m.Apply(entity.Block{Number: 6, Ops: []entity.Op{{Kind: entity.ExtendBTL, Key: modelKey, BTL: 100, Owner: otherOwner}}}))
	want.LastModifiedAtBlock, want.Expiration = 6, 106
	require.Equal(t, want, last())

	require.NoError(t, m.Apply(entity.Block{Number: 7, Ops: []entity.Op{{Kind: entity.ChangeOwner, Key: modelKey, BTL: 1, Owner: otherOwner}}}))
	want.LastModifiedAtBlock, want.Owner = 7, otherOwner
	require.Equal(t, want, last())

	require.NoError(t, m.Apply(entity.Block{Number: 8, Ops: []entity.Op{update}}))
	want = entity.Entity{
		Key: modelKey, Creator: modelOwner, Owner: otherOwner, ContentType: "b", StringAttributes: update.StringAttributes,
		Sequence: want.Sequence, LastModifiedAtBlock: 8, Expiration: 58,
	}
	require.Equal(t, want, last())

	require.NoError(t, m.Apply(entity.Block{Number: 9, Ops: []entity.Op{{Kind: entity.ExtendBTL, Key: modelKey, BTL: math.MaxInt64}}}))
	require.EqualValues(t, entity.MaxBlock, last().Expiration)
}

// TestModelPast: rewinds, prunes and what can be read.
func TestModelPast(t *testing.T) {
	m := Model{}
	s, err := m.At(0)
	require.NoError(t, err)
	require.Empty(t, s.visible)
	_, err = m.At(1)
	require.ErrorIs(t, err, store.ErrBlockRange)
	require.NoError(t, m.Rewind(0))
	require.ErrorIs(t, m.Prune(1), store.ErrBlockRange)

	require.NoError(t, m.Apply(modelBlockOf(10, modelOp(entity.Create, 5))))
	at10 := m.Head()
	require.NoError(t, m.Apply(modelBlockOf(20, modelOp(entity.Expire, 0))))
	require.Equal(t, at10.Digest, m.Head().Digest, "nothing changed")
	require.NoError(t, m.Apply(modelBlockOf(30, modelOp(entity.Create, 5))))
	require.NotEqual(t, at10.Digest, m.Head().Digest)

	require.ErrorIs(t, m.Rewind(31), store.ErrBlockRange)
	require.NoError(t, m.Rewind(19))
	require.Equal(t, at10, m.Head())
	require.NoError(t, m.Apply(modelBlockOf(20)))
	require.NoError(t, m.Apply(modelBlockOf(30, modelOp(entity.Expire, 0))))

	require.NoError(t, m.Prune(20))
	require.NoError(t, m.Prune(5), "already done")
	_, err = m.At(19)
	require.ErrorIs(t, err, store.ErrBlockRange)
	_, err = m.At(25)
	require.NoError(t, err)
	require.ErrorIs(t, m.Rewind(19), store.ErrBlockRange)
	require.NoError(t, m.Apply(modelBlockOf(31, modelOp(entity.Expire, 0))), "the version that ran out was pruned")
	require.NoError(t, m.Prune(25))
	require.ErrorIs(t, m.Rewind(27), store.ErrBlockRange, "block 20 would be the head, and cannot be read")
	require.NoError(t, m.Rewind(30))

	m.HeadOnly = true
	_, err = m.At(25)
	require.ErrorIs(t, err, store.ErrUnsupported)
	require.ErrorIs(t, m.Rewind(30), store.ErrUnsupported)
	require.NoError(t, m.Prune(30))
}

// TestModelQuery: orders, limits and positions.
func TestModelQuery(t *testing.T) {
	m, b := Model{}, entity.Block{Number: 1}
	for i, attributes := range []map[string]uint64{{"n": 5}, {"n": math.MaxUint64}, nil, {"n": 5}, {"n": 0}} {
		b.Ops = append(b.Ops, entity.Op{Kind: entity.Create, Key: someKeys[i], BTL: 9, TxIndex: uint32(3 - i%4), OpIndex: uint32(i / 4), NumericAttributes: attributes})
	}
	require.NoError(t, m.Apply(b))
	s, err := m.At(store.Head)
	require.NoError(t, err)
	byN := []store.Order{{Name: "n", Kind: entity.Numeric}}
	for _, tt := range []struct {
		name  string
		expr  query.Expr
		order []store.Order
		limit int
		after *entity.Entity
		want  []int // indexes of keys
	}{
		{"newest first", nil, nil, 0, nil, []int{4, 0, 1, 2, 3}},
		{"by number, missing last", query.All{}, byN, 0, nil, []int{4, 0, 3, 1, 2}},
		{"descending, missing last", nil, []store.Order{{Name: "n", Kind: entity.Numeric, Desc: true}}, 0, nil, []int{1, 0, 3, 4, 2}},
		{"by a name that nobody has", nil, []store.Order{{Name: "n", Kind: entity.String}}, 2, nil, []int{4, 0}},
		{"synthetic", nil, []store.Order{{Name: entity.AttrKey, Desc: true}}, 2, nil, []int{4, 3}},
		{"ties by key", nil, []store.Order{byN[0], {Name: entity.AttrKey, Desc: true}}, 0, nil, []int{4, 3, 0, 1, 2}},
		{"first by who has it not", nil, []store.Order{{Name: "n", Kind: entity.String}, {Name: entity.AttrOpIndex}, {Name: "n", Kind: entity.Numeric, Desc: true}}, 3, nil, []int{1, 0, 3}},
		{"page", nil, byN, 2, s.visible[4], []int{1, 2}},
		{"filter", query.Compare{Name: "n", Op: query.Greater, Value: query.Number(0)}, byN, 0, nil, []int{0, 3, 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			found, err := s.Query(tt.expr, tt.order, tt.limit, tt.after)
			require.NoError(t, err)
			var got []int
			for _, e := range found {
				got = append(got, int(e.Key[0]/0x10))
			}
			require.Equal(t, tt.want, got)
		})
	}
	_, err = s.Query(query.And{}, byN, 0, nil)
	require.ErrorIs(t, err, store.ErrInvalid)
	_, err = s.Count(query.Not{Term: query.Or{}})
	require.ErrorIs(t, err, store.ErrInvalid)
}

// TestSame: a field that is added to Entity must be compared too.
func TestSame(t *testing.T) {
	whole := entity.Entity{
		Key: entity.Key{1}, Creator: entity.Address{1}, Owner: entity.Address{1}, ContentType: "x", Content: []byte{1},
		StringAttributes: map[string]string{"a": "b"}, NumericAttributes: map[string]uint64{"a": 1},
		Sequence: 1, LastModifiedAtBlock: 1, Expiration: 1,
	}
	require.NoError(t, Same([]*entity.Entity{&whole}, []*entity.Entity{&whole}))
	require.ErrorIs(t, Same(nil, []*entity.Entity{&whole}), ErrDiffers)
	for i := range reflect.TypeFor[entity.Entity]().NumField() {
		other := whole
		field := reflect.ValueOf(&other).Elem().Field(i)
		require.False(t, field.IsZero(), "give the field a value above")
		field.SetZero()
		require.ErrorIs(t, Same([]*entity.Entity{&whole}, []*entity.Entity{&other}), ErrDiffers, reflect.TypeFor[entity.Entity]().Field(i).Name)
	}
}
