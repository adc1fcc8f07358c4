package feed

import (
	"bytes"
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
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

func decodeLine(line string) (entity.Op, error) {
	var d opDecoder
	return d.decode([]byte(line))
}

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
		got, err := decodeLine(test.line)
		require.NoError(t, err, test.line)
		require.Equal(t, test.want, got, test.line)
	}
}

// swap replaces pairs in a line, each of which must be there.
func swap(line string, pairs ...string) string {
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(line, pairs[i]) {
			panic("no " + pairs[i] + " in " + line)
		}
		line = strings.ReplaceAll(line, pairs[i], pairs[i+1])
	}
	return line
}

func TestDecodeRefuses(t *testing.T) {
	tests := []struct{ name, line, want string }{
		{"empty", ``, "empty line"},
		{"not an object", `[]`, "byte 1: unexpected '[', want an operation's object"},
		{"no operation", `{"tx_index":1,"op_index":2}`, "no operation"},
		{"no tx_index", swap(extendLine, `"tx_index":1,`, ``), "tx_index is missing"},
		{"no op_index", swap(extendLine, `"op_index":2,`, ``), "op_index is missing"},
		{"unknown kind", swap(extendLine, `extend_btl`, `renew`), `unknown field or operation "renew"`},
		{"kind in other case", swap(extendLine, `extend_btl`, `Extend_BTL`), `unknown field or operation "Extend_BTL"`},
		{"kind by number", swap(extendLine, `extend_btl`, `kind(7)`), `unknown field or operation "kind(7)"`},
		{"unknown top field", swap(extendLine, `"tx_index":1`, `"tx_index":1,"block":7`), `byte 15: unknown field or operation "block"`},
		{"two kinds", swap(extendLine, `}}`, `},"delete":`+keyNumbers+`}`), "two operations in one line, extend_btl and delete"},
		{"kind twice", swap(extendLine, `}}`, `},"extend_btl":{}}`), "two operations in one line"},
		{"null operation", `{"tx_index":1,"op_index":2,"create":null}`, "create: byte 37: unexpected 'n', want an object"},
		{"tx_index twice", swap(extendLine, `"op_index":2`, `"op_index":2,"tx_index":1`), "tx_index is given twice"},
		{"unknown field", swap(extendLine, `"btl":5`, `"btl":5,"add":true`), `extend_btl: byte 125: unknown field "add"`},
		{"field of another kind", swap(extendLine, `"btl":5`, `"btl":5,"owner":"`+ownerHex+`"`), `unknown field "owner"`},
		{"field in other case", swap(extendLine, `"btl"`, `"BTL"`), `unknown field "BTL"`},
		{"field twice", swap(extendLine, `"btl":5`, `"btl":5,"btl":6`), `field "btl" is given twice`},
		{"missing key", swap(extendLine, `"key":"`+keyHex+`",`, ``), `extend_btl: byte 50: field "key" is missing`},
		{"missing btl", swap(extendLine, `,"btl":5`, ``), `field "btl" is missing`},
		{"missing owner", swap(createLine, `"owner":"`+ownerHex+`",`, ``), `create: byte 235: field "owner" is missing`},
		{"missing content", swap(createLine, `"content":"AAE=",`, ``), `field "content" is missing`},
		{"missing attributes", swap(createLine, `,"numeric_attributes":{"n":18446744073709551615}`, ``), `field "numeric_attributes" is missing`},
		{"trailing text", extendLine + "x", "unexpected 'x', want the end of the line"},
		{"two objects", extendLine + extendLine, "unexpected '{', want the end of the line"},
		{"comma after the last member", swap(extendLine, `5}}`, `5,}}`), `unexpected '}', want a name in quotes`},
		{"comma after the last element", swap(deleteLine, `31,32]`, `31,]`), `unexpected ']', want an unsigned integer`},
		{"no comma", swap(extendLine, `,"btl"`, ` "btl"`), `unexpected '"', want ',' or '}'`},
		{"no colon", swap(extendLine, `"btl":`, `"btl"`), `unexpected '5', want a colon`},
		{"comment", swap(extendLine, `{"tx`, `/**/{"tx`), "unexpected '/'"},
		{"byte order mark", "\ufeff" + extendLine, `unexpected '\ufeff'`},

		{"key without 0x", swap(extendLine, `"0x01`, `"01`), "key: key \"0102"},
		{"short key", swap(extendLine, `20"`, `2"`), "want 0x and 64 hex digits"},
		{"key not hex", swap(extendLine, `20"`, `2g"`), "key: key"},
		{"key as array", swap(extendLine, `"`+keyHex+`"`, keyNumbers), "unexpected '[', want a string"},
		{"owner not hex", swap(ownerLine, `0xab`, `0xzz`), "change_owner: owner: address"},
		{"long owner", swap(ownerLine, `01"`, `0100"`), "want 0x and 40 hex digits"},
		{"null key", swap(extendLine, `"`+keyHex+`"`, `null`), "unexpected 'n', want a string"},

		{"delete with hex", swap(deleteLine, keyNumbers, `"`+keyHex+`"`), "want the key as an array of 32 numbers"},
		{"delete with object", swap(deleteLine, keyNumbers, `{"key":"`+keyHex+`"}`), "want the key as an array of 32 numbers"},
		{"short array", swap(deleteLine, `,32]`, `]`), "the key has not 32 numbers"},
		{"long array", swap(deleteLine, `,32]`, `,32,33]`), "the key has not 32 numbers"},
		{"empty array", swap(deleteLine, keyNumbers, `[]`), "the key has not 32 numbers"},
		{"array of words", swap(deleteLine, `,32]`, `,256]`), "the number 256 is above 255"},

		{"negative", swap(extendLine, `"btl":5`, `"btl":-5`), "btl: byte 123: the number is negative"},
		{"fraction", swap(extendLine, `"btl":5`, `"btl":5.0`), "not a plain integer"},
		{"exponent", swap(extendLine, `"btl":5`, `"btl":5e3`), "not a plain integer"},
		{"leading zero", swap(extendLine, `"btl":5`, `"btl":05`), "begins with 0"},
		{"plus", swap(extendLine, `"btl":5`, `"btl":+5`), "unexpected '+'"},
		{"hex number", swap(extendLine, `"btl":5`, `"btl":0x5`), "unexpected 'x'"},
		{"above 64 bits", swap(extendLine, `"btl":5`, `"btl":18446744073709551616`), "above 18446744073709551615"},
		{"far above 64 bits", swap(extendLine, `"btl":5`, `"btl":99999999999999999999999`), "above 18446744073709551615"},
		{"number in quotes", swap(extendLine, `"btl":5`, `"btl":"5"`), "want an unsigned integer"},
		{"null number", swap(extendLine, `"btl":5`, `"btl":null`), "want an unsigned integer"},
		{"tx_index too big", swap(extendLine, `"tx_index":1`, `"tx_index":65536`), "tx_index: byte 18: the number 65536 is above 65535"},
		{"op_index too big", swap(extendLine, `"op_index":2`, `"op_index":65536`), "op_index: byte 31: the number 65536 is above 65535"},

		{"base64 alphabet", swap(createLine, `AAE=`, `AA_=`), "content: illegal base64"},
		{"base64 padding", swap(createLine, `AAE=`, `AAE`), "content: illegal base64"},
		{"base64 spare bits", swap(createLine, `AAE=`, `AAF=`), "content: illegal base64"},
		{"base64 line break", swap(createLine, `AAE=`, `AA\nE=`), "content: line breaks within base64"},
		{"base64 raw line break", swap(createLine, `AAE=`, "AA\rE="), "content: line breaks within base64"},
		{"content as array", swap(createLine, `"AAE="`, `[0,1]`), "want a string in base64"},

		{"attribute twice", swap(createLine, `{"s":"t"}`, `{"s":"t","s":"u"}`), `string_attributes: byte 239: attribute "s" is given twice`},
		{"attribute twice by escape", swap(createLine, `{"s":"t"}`, `{"s":"t","\u0073":"u"}`), `attribute "s" is given twice`},
		{"number as string attribute", swap(createLine, `{"s":"t"}`, `{"s":1}`), `attribute "s": byte 235: unexpected '1', want a string`},
		{"null attribute", swap(createLine, `{"s":"t"}`, `{"s":null}`), `attribute "s": byte 235: unexpected 'n', want a string`},
		{"string as number", swap(createLine, `{"n":18446744073709551615}`, `{"n":"1"}`), `numeric_attributes: attribute "n"`},
		{"attributes as array", swap(createLine, `{"s":"t"}`, `[]`), "want an object"},
		{"nulls", swap(createLine, `{"s":"t"}`, `nulls`), "unexpected 's'"},

		{"open string", `{"tx_index`, "ends within a string"},
		{"open escape", `{"tx_index\`, "ends within an escape"},
		{"open escaped string", `{"tx\\index`, "ends within a string"},
		{"control character", "{\"tx\x01", "control character 0x01 in a string"},
		{"control character after escape", "{\"\\t\x01", "control character 0x01 in a string"},
		{"unknown escape", `{"\x41"`, `unknown escape \x`},
		{"short unicode escape", `{"\u41"`, "four hex digits"},
		{"no hex", `{"\u004g"`, "four hex digits"},
		{"high surrogate alone", `{"\ud834"`, "half of a surrogate pair"},
		{"high surrogate and letter", `{"\ud834\u0041"`, "half of a surrogate pair"},
		{"low surrogate alone", `{"\udd1e"`, "half of a surrogate pair"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := decodeLine(test.line)
			require.ErrorContains(t, err, test.want)
		})
	}
}

// What entity.Block.Validate refuses is refused with entry and line.
func TestReadTarValidates(t *testing.T) {
	for name, test := range map[string]struct{ line, want string }{
		"reserved name": {swap(createLine, `"s"`, `"$owner"`), "reserved"},
		"no name":       {swap(createLine, `"n"`, `""`), "no name"},
		"value":         {swap(createLine, `"t"`, "\"\xff\""), `value of string attribute "s" is not UTF-8`},
		"attribute":     {swap(createLine, `"n"`, "\"\xff\""), "is not UTF-8"},
		"content type":  {swap(createLine, `"a"`, "\"\xff\""), "content type"},
	} {
		_, err := drain(t, ReadTar(bytes.NewReader(makeTar(t, block("5", deleteLine+test.line)))))
		require.ErrorIs(t, err, ErrFormat, name)
		require.ErrorIs(t, err, entity.ErrInvalid, name)
		require.ErrorContains(t, err, `entry "block-5.json.zst": line 2: block 5, tx 1, op 2`, name)
		require.ErrorContains(t, err, test.want, name)
	}
}

// Names are shared between operations, but only so many.
func TestInternIsBounded(t *testing.T) {
	var s scanner
	name := []byte("a")
	first := s.intern(name)
	name[0] = 'b'
	require.Equal(t, "a", first)
	for i := range 3 * maxNames {
		want := strings.Repeat("x", i%(2*maxNameLen)) + string(rune(0x1000+i))
		require.Equal(t, want, s.intern([]byte(want)))
	}
	require.LessOrEqual(t, len(s.names), maxNames)
}

// FuzzDecode compares the line decoder with encoding/json: what it accepts,
// encoding/json must read in the same way.
func FuzzDecode(f *testing.F) {
	for _, b := range sampleBlocks() {
		for _, op := range b.Ops {
			f.Add([]byte(lineFor(op)))
		}
	}
	f.Add([]byte(swap(createLine, `{"s":"t"}`, `{"s\"":"\\\/\b\f\n\r\t\u00e9\ud834\uDD1e"}`)))
	f.Fuzz(func(t *testing.T, line []byte) {
		var d opDecoder
		got, err := d.decode(bytes.Clone(line))
		one := entity.Block{Ops: []entity.Op{got}}
		if err != nil || one.Validate() != nil {
			return
		}
		var want lineJSON
		dec := json.NewDecoder(bytes.NewReader(line))
		dec.DisallowUnknownFields()
		require.NoError(t, dec.Decode(&want))
		if diff := cmp.Diff(&want, newLine(&got), cmpopts.EquateEmpty(), cmp.Comparer(equalHex)); diff != "" {
			t.Errorf("encoding/json reads %q otherwise (-json +ours):\n%s", line, diff)
		}
		again, err := d.decode([]byte(lineFor(got)))
		require.NoError(t, err)
		require.Equal(t, got, again)
	})
}

// equalHex compares strings, keys and addresses in either case.
func equalHex(a, b string) bool {
	return a == b || strings.HasPrefix(b, "0x") && strings.EqualFold(a, b)
}

// Interned strings must not tie an operation to the line's memory.
func TestDecodeKeepsNothingOfTheLine(t *testing.T) {
	line := []byte(createLine)
	var d opDecoder
	op, err := d.decode(line)
	require.NoError(t, err)
	strs, content := maps.Clone(op.StringAttributes), bytes.Clone(op.Content)
	clear(line)
	_, err = d.decode([]byte(swap(createLine, "AAE=", "//8=", `"s"`, `"\u0061"`)))
	require.NoError(t, err)
	require.Equal(t, strs, op.StringAttributes)
	require.Equal(t, content, op.Content)
}
