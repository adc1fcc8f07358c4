package rpc

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/entity"
)

// gotBlock is a block as clients see it.
type gotBlock struct {
	Number, Hash, ParentHash, Timestamp string
	Transactions, Uncles                []string
}

// TestBlocks: a block has number, hash, the hash of the one before and time, and is null where
// there is none.
func TestBlocks(t *testing.T) {
	n := newNode(t, "compact", Options{BlockTime: 2 * time.Second})
	var b *gotBlock
	n.result(t, &b, "eth_getBlockByNumber", "latest", false)
	require.Nil(t, b)
	hash := entity.Hash{0: 0xaa, 31: 1}
	_, err := n.ents.Apply(t.Context(), entity.Block{Number: 0, Hash: hash, Time: 1_700_000_000, Ops: []entity.Op{create(1)}})
	require.NoError(t, err)
	for number := uint64(1); number <= 200; number++ {
		if number != 150 {
			n.apply(t, number)
		}
	}
	n.result(t, new(string), "eth_blockNumber") // the head is seen, from which times are counted
	list := map[string]*gotBlock{}
	for tag, want := range map[string]string{
		"latest": "0xc8", "pending": "0xc8", "safe": "0x48", "finalized": "0x48", "earliest": "0x0", "0x0": "0x0", "0x1": "0x1", "0x95": "0x95", "0x97": "0x97",
	} {
		for _, full := range []bool{false, true} {
			var b *gotBlock
			n.result(t, &b, "eth_getBlockByNumber", tag, full)
			require.NotNil(t, b, tag)
			require.Equal(t, want, b.Number)
			require.NotNil(t, b.Transactions)
			require.NotNil(t, b.Uncles)
			list[tag] = b
			var same *gotBlock
			n.result(t, &same, "eth_getBlockByHash", b.Hash, full)
			require.Equal(t, b, same)
		}
	}
	require.Equal(t, hash.String(), list["0x0"].Hash)
	require.Equal(t, "0x6553f100", list["0x0"].Timestamp)
	require.Equal(t, "0x"+zeroHash, list["0x0"].ParentHash)
	require.Equal(t, hash.String(), list["0x1"].ParentHash)
	require.Equal(t, list["0x95"].Hash, list["0x97"].ParentHash)
	for _, none := range []string{"0x96", "0xc9", "0xffffffffffffffff"} {
		var b *gotBlock
		n.result(t, &b, "eth_getBlockByNumber", none, false)
		require.Nil(t, b, none)
	}
	b = nil
	n.result(t, &b, "eth_getBlockByHash", "0x"+zeroHash, false)
	require.Nil(t, b)
	n.fails(t, CodeParams, "eth_getBlockByHash", "0x12", false)
	n.fails(t, CodeParams, "eth_getBlockByNumber", "newest", false)
	n.fails(t, CodeParams, "eth_getBlockByNumber")
}

// TestEarliest: the earliest block is the first that is kept, for each method.
func TestEarliest(t *testing.T) {
	n := newNode(t, "compact", Options{})
	for number := uint64(10); number <= 20; number++ {
		n.apply(t, number, create(int(number)))
	}
	earliest := func(block string, first, logs int) {
		t.Helper()
		var b gotBlock
		n.result(t, &b, "eth_getBlockByNumber", "earliest", false)
		require.Equal(t, block, b.Number)
		var page gotPage
		n.result(t, &page, "arkiv_query", "*", m{"atBlock": "earliest"})
		require.Equal(t, block, page.Block)
		require.Len(t, page.Data, first)
		var list []gotLog
		n.result(t, &list, "eth_getLogs", with(fromProcessor, "fromBlock", "earliest"))
		require.Len(t, list, logs)
	}
	earliest("0xa", 1, 11)
	require.NoError(t, n.ents.Prune(t.Context(), 15))
	earliest("0xf", 6, 5) // the store has only the state after block 15
	require.NoError(t, n.ents.Prune(t.Context(), 20))
	earliest("0x14", 11, 0)
}

// TestLogsByHash: the logs of a stored block are found by its hash, and the
// logs of a replaced block are not, even when its successor made the same
// changes.
func TestLogsByHash(t *testing.T) {
	n := newNode(t, "compact", Options{})
	hashes := map[uint64]entity.Hash{}
	forks := byte(0)
	apply := func(number uint64) {
		hash := entity.Hash(sha256.Sum256([]byte{forks, byte(number >> 16), byte(number >> 8), byte(number), byte(number >> 31)}))
		if number%3 == 0 {
			copy(hash[:], "like") // as others begin, too
		}
		hashes[number] = hash
		_, err := n.ents.Apply(t.Context(), entity.Block{Number: number, Hash: hashes[number], Ops: []entity.Op{{
			Kind: entity.Create, Key: keyOf(int(number % (1 << 24))), BTL: 1 << 40, Owner: alice,
		}}})
		require.NoError(t, err)
	}
	find := func(number uint64) {
		t.Helper()
		var logs []gotLog
		n.result(t, &logs, "eth_getLogs", with(fromProcessor, "blockHash", hashes[number].String()))
		require.Len(t, logs, 1, "block %d", number)
		require.Equal(t, fmt.Sprintf("0x%x", number), logs[0].Block)
	}
	var numbers []uint64
	for i := range uint64(700) {
		numbers = append(numbers, 17*i+3) // a dozen spans
	}
	numbers = append(numbers, 1<<31, 1<<31+spanBlocks) // behind gaps
	for _, number := range numbers {
		apply(number)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		find(numbers[r.IntN(len(numbers))])
	}
	n.fails(t, CodeUnknownBlock, "eth_getLogs", m{"blockHash": entity.Hash{0: 1}.String()})
	for range 3 {
		at := numbers[600+r.IntN(100)]
		require.NoError(t, n.ents.Rewind(t.Context(), at))
		forks++
		var gone []entity.Hash
		for _, number := range numbers {
			if number <= at {
				continue
			}
			gone = append(gone, hashes[number])
			delete(hashes, number)
			if r.IntN(4) > 0 {
				apply(number)
			}
		}
		for number := range hashes {
			find(number)
		}
		for _, hash := range gone {
			n.fails(t, CodeUnknownBlock, "eth_getLogs", m{"blockHash": hash.String()})
		}
	}
}
