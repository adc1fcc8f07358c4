package storetest

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/query"
)

// oddTexts are strings that engines, drivers or formats get wrong: text that
// looks like something else, is empty, is not ASCII, or means something in SQL,
// JSON or a pattern.
var oddTexts = []string{
	"", " ", "  padded  ", "a", "A", "b", "aa", "Z", "z", "é", "e\u0301", "ß", "日本", "😀", "\ue000", "\ufffd", "\u200b", "\u2028",
	"2024-01-02", "2024-01-02T03:04:05Z", "2024-01-02 03:04:05", "12:30", "1", "01", "1.0", "-1", "1e3", "0x10", "18446744073709551616",
	"null", "NULL", "true", "NaN", "Infinity", "{}", "[1]", `"quoted"`, `it's`, `''`, `back\slash`, `\x00`, `\u0041`, "%", "_", "100%",
	"*", "?", "[a]", "tab\there", "line\nbreak", "carriage\r\nreturn", "\x01\x1f\x7f", "<&>", "$1", ":a", "@a", "?1", "--", "/* */", ";",
	`'); DROP TABLE payloads; --`, `" OR 1=1 --`, "`; DELETE FROM payloads; `",
}

// oddNumbers are where signed integers and floating point go wrong.
var oddNumbers = []uint64{
	0, 1, 2, 9, 10, math.MaxUint8, math.MaxInt32, math.MaxUint32, math.MaxUint32 + 1, 1<<53 - 1, 1 << 53, 1<<53 + 1,
	math.MaxInt64 - 1, math.MaxInt64, math.MaxInt64 + 1, math.MaxInt64 + 2, 1<<63 + 1<<53 + 1, math.MaxUint64 - 1, math.MaxUint64,
}

// runValues checks that what is stored comes back exactly.
func runValues(t *testing.T, h Harness, layout string) {
	l := newLedger(t, h, layout)
	t.Run("odd texts", func(t *testing.T) { testOddTexts(t, l) })
	t.Run("odd numbers", func(t *testing.T) { testOddNumbers(t, l) })
	t.Run("contents", func(t *testing.T) { testContents(t, l) })
	t.Run("many attributes", func(t *testing.T) { testManyAttributes(t, l) })
	t.Run("one name, two types", func(t *testing.T) { testTwoTypes(t, l) })
	t.Run("keys and accounts", func(t *testing.T) { testKeys(t, l) })
}

// testOddTexts stores each as a value, as a name and as a content type, and
// keeps them through an operation that carries them over.
func testOddTexts(t *testing.T, l *ledger) {
	var create, extend []store.Op
	for i, s := range oddTexts {
		op := on(fmt.Sprintf("text %d", i), opCreate(100, text("odd", s), content(s, s)))
		if s != "" && s[0] != '$' {
			text(s, "text")(&op)
			number(s, 7)(&op)
		}
		create = append(create, op)
		extend = append(extend, on(fmt.Sprintf("text %d", i), opExtend(50)))
	}
	check := func() {
		t.Helper()
		want := sortedBy(create, func(op store.Op) string { return op.Key.String() })
		list := l.find(t, query.Glob{Name: "odd", Pattern: "*"}, &store.QueryOptions{Order: []store.Order{{Name: "$key"}}})
		require.Len(t, list, len(want))
		for i, e := range list {
			op := want[i]
			require.Equal(t, op.Key, e.Key)
			requireSame(t, op.StringAttributes, e.StringAttributes)
			requireSame(t, op.NumericAttributes, e.NumericAttributes)
			require.Equal(t, op.ContentType, e.ContentType)
			requireSame(t, op.Content, e.Content)
		}
	}
	l.apply(t, create...)
	check()
	l.apply(t, extend...)
	check()
	s := l.at(t, store.Head)
	for i, value := range oddTexts {
		list := results(t, s, query.Compare{Name: "odd", Op: query.Equal, Value: query.Text(value)}, nil)
		require.Len(t, list, 1, "%q", value)
		require.Equal(t, keyOf(fmt.Sprintf("text %d", i)), list[0].Key, "%q", value)
		if value != "" && value[0] != '$' {
			n := countOf(t, s, query.Compare{Name: value, Op: query.Equal, Value: query.Number(7)})
			require.EqualValues(t, 1, n, "%q", value)
		}
	}
}

func testOddNumbers(t *testing.T, l *ledger) {
	var create []store.Op
	for i, n := range oddNumbers {
		create = append(create, on(fmt.Sprintf("number %d", i), opCreate(100, number("odd", n))))
	}
	slices.Reverse(create)
	l.apply(t, create...)
	list := l.find(t, query.Compare{Name: "odd", Op: query.GreaterOrEqual, Value: query.Number(0)},
		&store.QueryOptions{Order: []store.Order{{Name: "odd", Kind: query.Number(0).Kind}}})
	got := make([]uint64, len(list))
	for i, e := range list {
		got[i] = e.NumericAttributes["odd"]
	}
	require.Equal(t, oddNumbers, got)
}

// testContents: any bytes, none, and more than a page of a database holds.
func testContents(t *testing.T, l *ledger) {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	for name, data := range map[string]string{
		"none": "", "NUL": "\x00", "every byte": string(every), "not UTF-8": "\xff\xfe", "large": strings.Repeat("varve", 100_000),
	} {
		op := on("content "+name, opCreate(100, content("application/octet-stream", data)))
		l.apply(t, op)
		require.Equal(t, data, string(l.get(t, op.Key).Content), name)
		l.apply(t, on("content "+name, opOwner(bob)))
		require.Equal(t, data, string(l.get(t, op.Key).Content), name)
	}
}

func testManyAttributes(t *testing.T, l *ledger) {
	var fields []field
	for i := range 500 {
		fields = append(fields, text(fmt.Sprintf("s%d", i), strings.Repeat("x", i)), number(fmt.Sprintf("n%d", i), uint64(i)))
	}
	op := on("wide", opCreate(100, fields...))
	l.apply(t, op)
	e := l.get(t, op.Key)
	requireSame(t, op.StringAttributes, e.StringAttributes)
	requireSame(t, op.NumericAttributes, e.NumericAttributes)
	l.apply(t, on("wide", opUpdate(100, text("s1", "y"))))
	require.Equal(t, []string{"s1"}, slices.Collect(maps.Keys(l.get(t, op.Key).StringAttributes)))
	require.Empty(t, l.find(t, query.Compare{Name: "n7", Op: query.Equal, Value: query.Number(7)}, nil))
}

// testTwoTypes: a string and a number of one name are two attributes.
func testTwoTypes(t *testing.T, l *ledger) {
	l.apply(t, on("both", opCreate(100, text("both", "7"), number("both", 8))), on("number", opCreate(100, number("both", 7))))
	e := l.get(t, keyOf("both"))
	require.Equal(t, "7", e.StringAttributes["both"])
	require.Equal(t, uint64(8), e.NumericAttributes["both"])
	s := l.at(t, store.Head)
	for value, want := range map[query.Value]string{
		query.Text("7"): "both", query.Text("8"): "", query.Number(8): "both", query.Number(7): "number",
	} {
		list := results(t, s, query.Compare{Name: "both", Op: query.Equal, Value: value}, nil)
		if want == "" {
			require.Empty(t, list)
			continue
		}
		require.Len(t, list, 1)
		require.Equal(t, keyOf(want), list[0].Key)
	}
	l.apply(t, on("both", opUpdate(100, number("both", 9))))
	requireSame(t, map[string]string(nil), l.get(t, keyOf("both")).StringAttributes)
}

// testKeys: any 32 bytes are a key and any 20 an account.
func testKeys(t *testing.T, l *ledger) {
	highest := store.Key{}
	for i := range highest {
		highest[i] = 0xff
	}
	for _, key := range []store.Key{{}, highest, {31: 1}, {0: 0x27, 1: 0x22, 2: 0x5c, 3: 0x25}} {
		op := opCreate(100, owner(store.Address{}))
		op.Key = key
		l.apply(t, op)
		e := l.get(t, key)
		require.Equal(t, key, e.Key)
		require.Equal(t, store.Address{}, e.Owner)
		q := query.Compare{Name: "$key", Op: query.Equal, Value: query.Text(key.String())}
		require.Len(t, l.find(t, q, nil), 1)
	}
	_, err := l.at(t, store.Head).Get(t.Context(), store.Key{30: 9})
	require.ErrorIs(t, err, store.ErrNotFound)
}
