package chain

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/entity"
)

// TestTopics compares Keccak-256 with what every chain has, and the processor with its name.
func TestTopics(t *testing.T) {
	require.Equal(t, "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef", topic("Transfer(address,address,uint256)").String())
	require.Equal(t, "0x00000000000000000000000000000061726b6976", entity.Address(Processor).String())
}

// sample has every kind of operation, and values at the edges, with a payload of a size.
func sample(size int) *Operations {
	long := bytes.Repeat([]byte("x"), size)
	full := Create{
		BTL: math.MaxUint64, ContentType: "text/plain", Payload: long,
		Strings: map[string]string{"": "", "größe": strings.Repeat("y", 56), "type": "\x00"},
		Numbers: map[string]uint64{"most": math.MaxUint64, "zero": 0, "127": 127, "128": 128, "256": 256},
	}
	key := entity.Key{0: 1, 31: 2}
	return &Operations{
		Creates:      []Create{full, {BTL: 1}},
		Updates:      []Update{{Key: key, Create: full}},
		Deletes:      []entity.Key{key, {}},
		Extensions:   []Extension{{key, 300}},
		OwnerChanges: []OwnerChange{{key, entity.Address{19: 9}}},
	}
}

func compress(t testing.TB, plain []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := brotli.NewWriter(&out)
	_, err := w.Write(plain)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return out.Bytes()
}

func TestOperationsRoundTrip(t *testing.T) {
	for _, ops := range []*Operations{{}, sample(70_000)} {
		input, err := ops.Encode()
		require.NoError(t, err)
		got, err := DecodeOperations(input)
		require.NoError(t, err)
		want, err := json.Marshal(ops)
		require.NoError(t, err)
		have, err := json.Marshal(got)
		require.NoError(t, err)
		// Nil and empty are one in RLP.
		require.Equal(t, nullsGone(want), nullsGone(have))
	}
}

func nullsGone(b []byte) string { return string(bytes.ReplaceAll(b, []byte("null"), []byte(`""`))) }

// TestOperationsKnown: one create as the chain's own encoder writes it, byte by byte.
func TestOperationsKnown(t *testing.T) {
	ops := &Operations{Creates: []Create{{
		BTL: 1000, ContentType: "a", Payload: []byte("dog"),
		Strings: map[string]string{"k": "v"}, Numbers: map[string]uint64{"n": 1024},
	}}}
	known := "d8" + // the transaction
		"d3" + "d2" + // one create
		"8203e8" + "61" + "83646f67" + // 1000, "a", "dog"
		"c3" + "c2" + "6b" + "76" + // [["k", "v"]]
		"c5" + "c4" + "6e" + "820400" + // [["n", 1024]]
		"c0c0c0c0"
	require.Equal(t, known, hex.EncodeToString(ops.encodeRLP()))
	got, err := decodeRLP(ops.encodeRLP())
	require.NoError(t, err)
	require.Equal(t, ops, got)
}

func TestOperationsMalformed(t *testing.T) {
	whole := sample(70_000).encodeRLP()
	for name, text := range map[string]string{
		"nothing":               "",
		"bytes":                 "83646f67",
		"too few lists":         "c4c0c0c0c0",
		"too many lists":        "c6c0c0c0c0c0c0",
		"after the end":         "c5c0c0c0c0c000",
		"bytes for a list":      "c580c0c0c0c0",
		"a list for a key":      "c6c0c0c1c0c0c0",
		"short key":             "c6c0c0c101c0c0",
		"create of bytes":       "c6c101c0c0c0c0",
		"create of too few":     "c8c3c20180c0c0c0c0",
		"create of too many":    "ccc7c6018080c0c080c0c0c0c0",
		"leading zero":          "cbc6c5008080c0c0c0c0c0c0",
		"nine bytes":            "d4cfce89010000000000000000" + "8080c0c0" + "c0c0c0c0",
		"cut off":               "f8",
		"long form of short":    "f805c0c0c0c0c0",
		"length with zero":      "f90005c0c0c0c0c0",
		"length of eight bytes": "ffffffffffffffffff",
		"byte with a length":    "ccc7c681018080c0c0c0c0c0c0",
		"above what is left":    "c6c0c0c0c0c0",
	} {
		plain, err := hex.DecodeString(text)
		require.NoError(t, err, name)
		_, err = DecodeOperations(compress(t, plain))
		require.ErrorIs(t, err, ErrRLP, name)
	}
	for n := range 200 {
		_, err := decodeRLP(whole[:n])
		require.ErrorIs(t, err, ErrRLP)
	}
}

func TestOperationsBounds(t *testing.T) {
	bomb := compress(t, make([]byte, MaxOperations+1))
	require.Less(t, len(bomb), 1000)
	_, err := DecodeOperations(bomb)
	require.ErrorIs(t, err, ErrTooLarge)
	_, err = DecodeOperations(compress(t, make([]byte, 100<<20)))
	require.ErrorIs(t, err, ErrTooLarge)

	for _, input := range [][]byte{nil, {0xff}, bomb[:len(bomb)/2], []byte("not Brotli")} {
		_, err := DecodeOperations(input)
		require.ErrorIs(t, err, ErrCompression, "%x", input)
	}

	ops := &Operations{Creates: make([]Create, MaxCreates)}
	_, err = decodeRLP(ops.encodeRLP())
	require.NoError(t, err)
	ops.Creates = append(ops.Creates, Create{})
	_, err = decodeRLP(ops.encodeRLP())
	require.ErrorIs(t, err, ErrTooMany)

	items := bytes.Repeat([]byte{0xc2, 0x80, 0x80}, MaxList+1) // of extensions; the first is malformed already
	_, err = decodeRLP(appendList(nil, slices.Concat([]byte{0xc0, 0xc0, 0xc0}, appendList(nil, items), []byte{0xc0})))
	require.ErrorIs(t, err, ErrRLP)

	twice := appendList(nil, bytes.Repeat([]byte{0xc2, 'k', 'v'}, 2))
	one := slices.Concat([]byte{1, 0x80, 0x80}, twice, []byte{0xc0})
	creates := appendList(nil, appendList(nil, one))
	_, err = decodeRLP(appendList(nil, slices.Concat(creates, []byte{0xc0, 0xc0, 0xc0, 0xc0})))
	require.ErrorIs(t, err, ErrDuplicate)
}

// TestOperationsText: invalid text that the chain accepts does not end a
// follower.
func TestOperationsText(t *testing.T) {
	ops := &Operations{Creates: []Create{{BTL: 1, ContentType: "a\xff\xfe", Strings: map[string]string{"k": "\xed\xa0\x80ü"}}}}
	got, err := decodeRLP(ops.encodeRLP())
	require.NoError(t, err)
	require.Equal(t, "a\ufffd\ufffd", got.Creates[0].ContentType)
	require.Equal(t, "\ufffd\ufffd\ufffdü", got.Creates[0].Strings["k"])
}

// TestDecodeReceipts: receipts that do not fit are refused, wherever they do not.
func TestDecodeReceipts(t *testing.T) {
	key := entity.Key{1}
	whole := func() (*Block, []Receipt) {
		input, err := (&Operations{Creates: []Create{{BTL: 5}}, Extensions: []Extension{{key, 7}}}).Encode()
		require.NoError(t, err)
		b := &Block{Number: 10, Hash: entity.Hash{9}, Timestamp: 1, Transactions: []Transaction{{Hash: entity.Hash{8}, To: &Processor, Input: input}}}
		until := make([]byte, 96)
		until[63] = 40
		return b, []Receipt{{BlockHash: b.Hash, TransactionHash: entity.Hash{8}, Status: 1, Logs: []Log{
			{Address: Processor, Topics: []entity.Hash{TopicCreated, {2}}},
			{Address: Processor, Topics: []entity.Hash{TopicExtended, entity.Hash(key)}, Data: until},
		}}}
	}
	b, receipts := whole()
	got, err := Decode(b, receipts)
	require.NoError(t, err)
	require.Equal(t, entity.Block{Number: 10, Hash: entity.Hash{9}, Time: 1, Ops: []entity.Op{
		{Kind: entity.Create, Key: entity.Key{2}, BTL: 5},
		{Kind: entity.ExtendBTL, Key: key, BTL: 30},
	}}, blank(got))
	for name, spoil := range map[string]func(b *Block, r []Receipt) []Receipt{
		"none":               func(*Block, []Receipt) []Receipt { return nil },
		"more":               func(_ *Block, r []Receipt) []Receipt { return append(r, r[0]) },
		"of another block":   func(b *Block, r []Receipt) []Receipt { b.Hash[0]++; return r },
		"of another tx":      func(b *Block, r []Receipt) []Receipt { b.Transactions[0].Hash[0]++; return r },
		"no log":             func(_ *Block, r []Receipt) []Receipt { r[0].Logs = r[0].Logs[1:]; return r },
		"log without a key":  func(_ *Block, r []Receipt) []Receipt { r[0].Logs[0].Topics = r[0].Logs[0].Topics[:1]; return r },
		"log of somebody":    func(_ *Block, r []Receipt) []Receipt { r[0].Logs[0].Address[0]++; return r },
		"short data":         func(_ *Block, r []Receipt) []Receipt { r[0].Logs[1].Data = r[0].Logs[1].Data[:63]; return r },
		"another key":        func(_ *Block, r []Receipt) []Receipt { r[0].Logs[1].Topics[1][0]++; return r },
		"extended backwards": func(_ *Block, r []Receipt) []Receipt { r[0].Logs[1].Data[63] = 9; return r },
	} {
		b, receipts := whole()
		_, err := Decode(b, spoil(b, receipts))
		require.ErrorIs(t, err, ErrReceipts, name)
	}
	b, receipts = whole()
	receipts[0].Logs[1].Data[32] = 1
	got, err = Decode(b, receipts)
	require.NoError(t, err)
	require.Equal(t, uint64(math.MaxUint64-10), got.Ops[1].BTL)
	receipts[0].Status = 0
	got, err = Decode(b, receipts)
	require.NoError(t, err)
	require.Empty(t, got.Ops, "the transaction failed")
}

// blank makes empty contents nil.
func blank(b entity.Block) entity.Block {
	for i := range b.Ops {
		if len(b.Ops[i].Content) == 0 {
			b.Ops[i].Content = nil
		}
	}
	return b
}
