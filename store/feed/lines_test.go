package feed

import (
	"bytes"
	"errors"
	"iter"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/entity"
)

func writeLines(t testing.TB, blocks []entity.Block) []byte {
	t.Helper()
	var text bytes.Buffer
	require.NoError(t, WriteLines(t.Context(), &text, listed(blocks), nil))
	return text.Bytes()
}

func listed(blocks []entity.Block) iter.Seq2[entity.Block, error] {
	return func(yield func(entity.Block, error) bool) {
		for _, b := range blocks {
			if !yield(b, nil) {
				return
			}
		}
	}
}

// forEver makes one of all lifetimes that do not end, as lines do.
func forEver(b *entity.Block) {
	for i := range b.Ops {
		op := &b.Ops[i]
		if op.Kind <= entity.Update && entity.AddBlocks(b.Number, op.BTL) == entity.MaxBlock {
			op.BTL = entity.MaxBlock
		}
	}
}

// TestLinesRoundTrip: the blocks that are read are those that were written, with hashes,
// times, horizons, the largest numbers and odd text.
func TestLinesRoundTrip(t *testing.T) {
	blocks := sampleBlocks()
	blocks[0].Hash, blocks[0].Time, blocks[0].Horizon = entity.Hash{1}, 1<<64-1, 1
	last := blocks[len(blocks)-1] // of the highest number there is
	next := entity.Block{Number: last.Number - 9}
	for kind := entity.Create; kind <= entity.Expire; kind++ {
		op := entity.Op{Kind: kind, TxIndex: 65535, OpIndex: uint32(kind), Key: entity.Key{byte(kind)}}
		if kind == entity.Create || kind == entity.Update {
			op.BTL, op.NumericAttributes = 1, map[string]uint64{"n": 1<<64 - 1, "m": 1 << 53}
			op.StringAttributes = map[string]string{"s\"": "<&>\u2028é𝄞\x00", "S": ""}
		}
		next.Ops = append(next.Ops, op)
	}
	forever := entity.Op{Kind: entity.Create, Key: entity.Key{9}, BTL: entity.MaxBlock}
	blocks = append(blocks[:len(blocks)-1], next, entity.Block{Number: next.Number + 5, Ops: []entity.Op{forever}}, last)
	text := writeLines(t, blocks)
	for i := range blocks {
		forEver(&blocks[i])
	}
	require.Equal(t, blocks, collect(t, ReadLines(iotest.OneByteReader(bytes.NewReader(text)))))
}

// TestLinesExample reads the example of the documentation.
func TestLinesExample(t *testing.T) {
	text, err := os.ReadFile("../../testdata/blocks.jsonl")
	require.NoError(t, err)
	blocks := collect(t, ReadLines(bytes.NewReader(text)))
	require.Len(t, blocks, 5)
	first := blocks[0].Ops[0]
	require.Equal(t, "Grüße", string(first.Content))
	require.Equal(t, uint64(1<<64-1), first.NumericAttributes["serial"])
	require.Equal(t, uint64(entity.MaxBlock), first.BTL, "left out, it lives for ever")
	require.Equal(t, uint32(1), blocks[0].Ops[1].OpIndex, "numbered by its place")
	require.Equal(t, []byte{0, 1, 2}, blocks[0].Ops[1].Content)
	require.Empty(t, blocks[3].Ops)
}

// TestLinesRefuse: what is not as described is refused, with the line and the member.
func TestLinesRefuse(t *testing.T) {
	op := `{"op":"create","key":"` + keyHex + `"`
	line := func(ops ...string) string { return `{"block":2,"operations":[` + strings.Join(ops, ",") + "]}\n" }
	for text, want := range map[string]string{
		`{"operations":[]}`:                                `line 2: field "block" is missing`,
		`{"block":1}`:                                      `line 2: block 1 after block 1 of line 1, want rising block numbers`,
		`{"block":-2}`:                                     `line 2: json: at "/block": -2, want uint64`,
		`{"block":2,"blocks":1}`:                           `at "/blocks": unknown object member name`,
		`{"block":2,"block":3}`:                            `duplicate object member name "block"`,
		`{"block":2} {"block":3}`:                          `line 2: `,
		`{"block":4294967296}`:                             `above the highest block number`,
		`{"block":2,"hash":"0x1"}`:                         `at "/hash": hash "0x1"`,
		`[]`:                                               `line 2: json: at "": `,
		`{"block":2`:                                       `line 2: `,
		line(`{"key":"` + keyHex + `"}`):                   `line 2: at "/operations/0": field "op" is missing`,
		line(`{"op":"create"}`):                            `at "/operations/0": field "key" is missing`,
		line(op+`}`, op+`,"Owner":""}`):                    `at "/operations/1/Owner": unknown`,
		line(op + `,"owner":"0x12"}`):                      `at "/operations/0": owner: address "0x12": want 0x and 40 hex digits`,
		line(op + `,"owner":1}`):                           `at "/operations/0/owner": number, want string`,
		line(`{"op":"make","key":"` + keyHex + `"}`):       `op "make" is not known; known are ["create"`,
		line(op + `,"lifetime":0}`):                        `line 2: block 2, tx 0, op 0: create ` + keyHex + `: invalid: BTL is 0`,
		line(op + `,"lifetime":"x"}`):                      `at "/operations/0/lifetime": "x" where an integer from 0 to 2^64-1 is wanted`,
		line(op + `,"payload":"AA_="}`):                    `at "/operations/0/payload": `,
		line(op + `,"payload":"AA==","payload_text":"a"}`): `"payload" and "payload_text" are both given`,
		line(op + `,"numeric_attributes":{"n":null}}`):     `at "/operations/0/numeric_attributes/n": null, want a value`,
		line(op + `,"numeric_attributes":{"n":1.5}}`):      `at "/operations/0/numeric_attributes/n": 1.5 where`,
		line(op + `,"numeric_attributes":{"n":-1}}`):       `at "/operations/0/numeric_attributes/n": -1 where`,
		line(op + `,"string_attributes":{"a":1}}`):         `at "/operations/0/string_attributes/a": number, want string`,
		line(op + `,"string_attributes":{"$a":"b"}}`):      `names that start with $ are reserved`,
		line(op + `,"string_attributes":{"a":"\ud800"}}`):  `line 2: `,
		line(op + `,"tx_index":1}`):                        `give tx_index and op_index both, or neither`,
		line(op+`,"tx_index":0,"op_index":1}`, op+`}`):     `TxIndex and OpIndex are those of an earlier create`,
		line(`{"op":"delete","key":"` + keyHex + `","owner":"` + ownerHex + `"}`): `delete takes no "owner"`,
		line(`{"op":"extend","key":"` + keyHex + `"}`):                            `field "lifetime" is missing`,
		line(`{"op":"extend","key":"` + keyHex + `","lifetime":1,"payload":""}`):  `extend takes no "payload"`,
		line(`{"op":"change_owner","key":"` + keyHex + `"}`):                      `field "owner" is missing`,
	} {
		got, err := drain(t, ReadLines(strings.NewReader(`{"block":1}`+"\n"+text)))
		require.ErrorIs(t, err, ErrFormat, text)
		require.ErrorContains(t, err, want, text)
		require.Equal(t, 1, got, text)
	}
}

// TestLinesLimits: a line that is too long is not read to its end, and an error of the
// reader is not one of format.
func TestLinesLimits(t *testing.T) {
	long := strings.Repeat(" ", 30) + `{"block":2}`
	_, err := drain(t, readLines(strings.NewReader(`{"block":1}`+"\n"+long), 40))
	require.ErrorIs(t, err, ErrFormat)
	require.ErrorContains(t, err, "the line after block 1 is longer than 40 bytes")
	require.Len(t, collect(t, readLines(strings.NewReader(long+"\n\n"), 41)), 1)
	broken := errors.New("broken")
	_, err = drain(t, ReadLines(iotest.ErrReader(broken)))
	require.ErrorIs(t, err, broken)
	require.NotErrorIs(t, err, ErrFormat)
}

// FuzzReadLines reads any text: it gives valid blocks in order, and then perhaps an
// error of format. The blocks that are read can be written and read again.
func FuzzReadLines(f *testing.F) {
	f.Add(writeLines(f, sampleBlocks()))
	example, err := os.ReadFile("../../testdata/blocks.jsonl")
	require.NoError(f, err)
	f.Add(example)
	f.Fuzz(func(t *testing.T, text []byte) {
		var blocks []entity.Block
		for b, err := range readLines(bytes.NewReader(text), 1<<16) {
			if err != nil {
				require.ErrorIs(t, err, ErrFormat)
				break
			}
			require.NoError(t, b.Validate())
			if n := len(blocks); n > 0 {
				require.Greater(t, b.Number, blocks[n-1].Number)
			}
			blocks = append(blocks, b)
		}
		text = writeLines(t, blocks)
		for i := range blocks {
			forEver(&blocks[i])
		}
		require.Equal(t, blocks, collect(t, ReadLines(bytes.NewReader(text))))
	})
}
