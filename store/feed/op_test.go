package feed

import (
	"bytes"
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/entity"
)

const (
	keyHex     = "0x0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20"
	ownerHex   = "0xab00000000000000000000000000000000000001"
	keyNumbers = "[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32]"

	putBody    = `{"key":"` + keyHex + `","content_type":"a","btl":5,"owner":"` + ownerHex + `","content":"AAE=","string_attributes":{"s":"t"},"numeric_attributes":{"n":18446744073709551615}}`
	createLine = `{"tx_index":1,"op_index":2,"create":` + putBody + "}\n"
	deleteLine = `{"tx_index":1,"op_index":2,"delete":` + keyNumbers + "}\n"
	extendLine = `{"tx_index":1,"op_index":2,"extend_btl":{"key":"` + keyHex + `","btl":5}}`
	ownerLine  = `{"tx_index":1,"op_index":2,"change_owner":{"key":"` + keyHex + `","owner":"` + ownerHex + `"}}`
)

func TestDecode(t *testing.T) {
	key, err := entity.ParseKey(keyHex)
	require.NoError(t, err)
	owner, err := entity.ParseAddress(ownerHex)
	require.NoError(t, err)
	create := entity.Op{
		Kind: entity.Create, TxIndex: 1, OpIndex: 2, Key: key, BTL: 5, Owner: owner, ContentType: "a", Content: []byte{0, 1},
		StringAttributes: map[string]string{"s": "t"}, NumericAttributes: map[string]uint64{"n": 1<<64 - 1},
	}
	update := create
	update.Kind = entity.Update
	bare := create
	bare.Content, bare.StringAttributes, bare.NumericAttributes = nil, nil, nil
	escaped := create
	escaped.StringAttributes = map[string]string{"s\"": "\\/\b\f\n\r\té𝄞 t"}
	tests := []struct {
		line string
		want entity.Op
	}{
		{createLine, create},
		{strings.Replace(createLine, "create", "update", 1), update},
		{swap(createLine, `"AAE="`, `""`, `{"s":"t"}`, `{}`, `{"n":18446744073709551615}`, `{}`), bare},
		{swap(createLine, `"AAE="`, `null`, `{"s":"t"}`, `null`, `{"n":18446744073709551615}`, `null`), bare},
		{swap(createLine, `{"s":"t"}`, `{"s\"":"\\\/\b\f\n\r\t\u00e9\ud834\uDD1e t"}`), escaped},
		{swap(createLine, `"AAE="`, `"AA\u0045="`), create},
		{swap(createLine, `:`, " :\t", `,`, " ,\r", `{`, " { "), create},
		{deleteLine, entity.Op{Kind: entity.Delete, TxIndex: 1, OpIndex: 2, Key: key}},
		{swap(deleteLine, "delete", "expire"), entity.Op{Kind: entity.Expire, TxIndex: 1, OpIndex: 2, Key: key}},
		{extendLine, entity.Op{Kind: entity.ExtendBTL, TxIndex: 1, OpIndex: 2, Key: key, BTL: 5}},
		{ownerLine, entity.Op{Kind: entity.ChangeOwner, TxIndex: 1, OpIndex: 2, Key: key, Owner: owner}},
	}
	for _, test := range tests {
		got, err := decode([]byte(test.line))
		require.NoError(t, err, test.line)
		require.Equal(t, test.want, got, test.line)
	}
}

// swap replaces pairs in a line. Each first part must be there.
func swap(line string, pairs ...string) string {
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(line, pairs[i]) {
			panic("no " + pairs[i] + " in " + line)
		}
		line = strings.ReplaceAll(line, pairs[i], pairs[i+1])
	}
	return line
}

// TestDecodeRefuses: what another writer, or damage, would give is refused.
func TestDecodeRefuses(t *testing.T) {
	for name, line := range map[string]string{
		"empty":                      ``,
		"not an object":              `[]`,
		"no operation":               `{"tx_index":1,"op_index":2}`,
		"no tx_index":                swap(extendLine, `"tx_index":1,`, ``),
		"unknown kind":               swap(extendLine, `extend_btl`, `renew`),
		"kind in other case":         swap(extendLine, `extend_btl`, `Extend_BTL`),
		"two kinds":                  swap(extendLine, `}}`, `},"delete":`+keyNumbers+`}`),
		"kind twice":                 swap(extendLine, `}}`, `},"extend_btl":{}}`),
		"null operation":             `{"tx_index":1,"op_index":2,"create":null}`,
		"unknown field":              swap(extendLine, `"btl":5`, `"btl":5,"add":true`),
		"field in other case":        swap(extendLine, `"btl"`, `"BTL"`),
		"field twice":                swap(extendLine, `"btl":5`, `"btl":5,"btl":6`),
		"missing key":                swap(extendLine, `"key":"`+keyHex+`",`, ``),
		"missing btl":                swap(extendLine, `,"btl":5`, ``),
		"missing owner":              swap(createLine, `"owner":"`+ownerHex+`",`, ``),
		"missing content":            swap(createLine, `"content":"AAE=",`, ``),
		"missing attributes":         swap(createLine, `,"numeric_attributes":{"n":18446744073709551615}`, ``),
		"key without 0x":             swap(extendLine, `"0x01`, `"01`),
		"short key":                  swap(extendLine, `20"`, `2"`),
		"value no UTF-8":             swap(createLine, `"t"`, "\"\xff\""),
		"key as array":               swap(extendLine, `"`+keyHex+`"`, keyNumbers),
		"null key":                   swap(extendLine, `"`+keyHex+`"`, `null`),
		"delete with hex":            swap(deleteLine, keyNumbers, `"`+keyHex+`"`),
		"short array":                swap(deleteLine, `,32]`, `]`),
		"long array":                 swap(deleteLine, `,32]`, `,32,33]`),
		"array of words":             swap(deleteLine, `,32]`, `,256]`),
		"negative":                   swap(extendLine, `"btl":5`, `"btl":-5`),
		"above 64 bits":              swap(extendLine, `"btl":5`, `"btl":18446744073709551616`),
		"number in quotes":           swap(extendLine, `"btl":5`, `"btl":"5"`),
		"null number":                swap(extendLine, `"btl":5`, `"btl":null`),
		"tx_index too big":           swap(extendLine, `"tx_index":1`, `"tx_index":65536`),
		"op_index too big":           swap(extendLine, `"op_index":2`, `"op_index":65536`),
		"base64 alphabet":            swap(createLine, `AAE=`, `AA_=`),
		"base64 padding":             swap(createLine, `AAE=`, `AAE`),
		"base64 spare bits":          swap(createLine, `AAE=`, `AAF=`),
		"base64 line break":          swap(createLine, `AAE=`, `AA\nE=`),
		"content as array":           swap(createLine, `"AAE="`, `[0,1]`),
		"attribute twice":            swap(createLine, `{"s":"t"}`, `{"s":"t","s":"u"}`),
		"number as string attribute": swap(createLine, `{"s":"t"}`, `{"s":1}`),
		"null attribute":             swap(createLine, `{"s":"t"}`, `{"s":null}`),
		"string as number":           swap(createLine, `{"n":18446744073709551615}`, `{"n":"1"}`),
	} {
		_, err := decode([]byte(line))
		require.Error(t, err, name)
	}
	for want, line := range map[string]string{
		`field "btl" is missing`:                          swap(extendLine, `,"btl":5`, ``),
		"the line has 2 operations":                       swap(extendLine, `}}`, `},"delete":`+keyNumbers+`}`),
		`at "/extend_btl/btl": -5`:                        swap(extendLine, `"btl":5`, `"btl":-5`),
		`duplicate object member name`:                    swap(createLine, `{"s":"t"}`, `{"s":"t","s":"u"}`),
		"extend_btl: key: key \"0102":                     swap(extendLine, `"0x01`, `"01`),
		"want 0x and 40 hex digits":                       swap(ownerLine, `01"`, `0100"`),
		`at "/extend_btl/up": unknown object member name`: swap(extendLine, `"btl":5`, `"btl":5,"up":true`),
	} {
		_, err := decode([]byte(line))
		require.ErrorContains(t, err, want)
	}
}

// What entity.Block.Validate refuses is refused with entry and line.
func TestReadTarValidates(t *testing.T) {
	for name, test := range map[string]struct{ line, want string }{
		"reserved name": {swap(createLine, `"s"`, `"$owner"`), "reserved"},
		"no name":       {swap(createLine, `"n"`, `""`), "no name"},
	} {
		_, err := drain(t, ReadTar(bytes.NewReader(makeTar(t, block("5", deleteLine+test.line)))))
		require.ErrorIs(t, err, ErrFormat, name)
		require.ErrorIs(t, err, entity.ErrInvalid, name)
		require.ErrorContains(t, err, `entry "block-5.json.zst": line 2: block 5, tx 1, op 2`, name)
		require.ErrorContains(t, err, test.want, name)
	}
}

// FuzzDecode writes the operations that it reads, and reads the same again.
func FuzzDecode(f *testing.F) {
	for _, b := range sampleBlocks() {
		for _, op := range b.Ops {
			f.Add([]byte(lineFor(op)))
		}
	}
	f.Add([]byte(swap(createLine, `{"s":"t"}`, `{"s\"":"\\\/\b\f\n\r\t\u00e9\ud834\uDD1e"}`)))
	f.Fuzz(func(t *testing.T, line []byte) {
		got, err := decode(bytes.Clone(line))
		one := entity.Block{Ops: []entity.Op{got}}
		if err != nil || one.Validate() != nil {
			return
		}
		require.True(t, json.Valid(line), "%q", line)
		again, err := decode([]byte(lineFor(got)))
		require.NoError(t, err)
		require.Equal(t, got, again)
	})
}

// An operation must not be tied to the line's memory.
func TestDecodeKeepsNothingOfTheLine(t *testing.T) {
	line := []byte(createLine)
	op, err := decode(line)
	require.NoError(t, err)
	strs, content := maps.Clone(op.StringAttributes), bytes.Clone(op.Content)
	clear(line)
	require.Equal(t, strs, op.StringAttributes)
	require.Equal(t, content, op.Content)
}
