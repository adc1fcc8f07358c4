package chain

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzOperations: no RLP ends the program, and accepted operations are encoded
// again as they were but for the order of attributes and invalid text.
func FuzzOperations(f *testing.F) {
	f.Add(sample(60).encodeRLP())
	f.Add((&Operations{}).encodeRLP())
	f.Fuzz(func(t *testing.T, plain []byte) {
		ops, err := decodeRLP(plain)
		if err != nil {
			return
		}
		again, err := decodeRLP(ops.encodeRLP())
		require.NoError(t, err)
		require.Equal(t, ops.encodeRLP(), again.encodeRLP())
	})
}

// FuzzInput: no input of a transaction, which is Brotli from any sender, ends
// the program, and accepted input is encoded again as it was.
func FuzzInput(f *testing.F) {
	for _, ops := range []*Operations{sample(60), {}} {
		input, err := ops.Encode()
		require.NoError(f, err)
		f.Add(input)
		f.Add(input[:len(input)/2])
	}
	f.Add([]byte{})
	f.Add([]byte("not Brotli"))
	f.Add([]byte("\x8b\x00\x80\xaa\xaa\xaa\xea\xff\x74\xe5")) // cut off
	f.Fuzz(func(t *testing.T, input []byte) {
		ops, err := DecodeOperations(input)
		require.Equal(t, err == nil, ops != nil)
		if err != nil {
			return
		}
		input, err = ops.Encode()
		require.NoError(t, err)
		again, err := DecodeOperations(input)
		require.NoError(t, err)
		require.Equal(t, ops.encodeRLP(), again.encodeRLP())
	})
}

// FuzzBlock: no answer of an execution client ends the program, and the decoded
// values belong to the block.
func FuzzBlock(f *testing.F) {
	f.Add([]byte(`{"number":"0x1","hash":"0x`+zeros+`","transactions":[{"hash":"0x`+zeros+`","from":"0x0000000000000000000000000000000000000000","to":null,"input":"0x"}]}`),
		[]byte(`[{"status":"0x1","blockHash":"0x`+zeros+`","transactionHash":"0x`+zeros+`","logs":[{"address":"0x00000000000000000000000000000061726b6976","topics":["`+TopicExpired.String()+`"],"data":"0x`+zeros+`"}]}]`))
	f.Fuzz(func(t *testing.T, block, receipts []byte) {
		var b Block
		var r []Receipt
		if json.Unmarshal(block, &b) != nil || json.Unmarshal(receipts, &r) != nil {
			return
		}
		got, err := Decode(&b, r)
		require.Equal(t, uint64(b.Number), got.Number)
		if err == nil {
			require.Equal(t, len(b.Transactions), len(r))
		}
	})
}

const zeros = "0000000000000000000000000000000000000000000000000000000000000000"
