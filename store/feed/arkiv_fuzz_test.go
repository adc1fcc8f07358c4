package feed

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/entity"
)

// The attributes of a sound row.
const (
	rowStrings = `{"$key":"0x0000000000000000000000000000000000000000000000000000000000000000",` +
		`"$owner":"0x0000000000000000000000000000000000000001","$creator":"0x0000000000000000000000000000000000000001","type":"node"}`
	rowNumbers = `{"$sequence":12884967424,"$expiration":30,"$createdAtBlock":3,"$txIndex":1,"$opIndex":0,"cpu":18446744073709551615}`
)

// FuzzStateRow reads arbitrary rows of a state: a row gives an entity that the
// database may have, or an error.
func FuzzStateRow(f *testing.F) {
	key := make([]byte, 32)
	values := func(list string) []byte { return []byte(`{"Values":` + list + `}`) }
	numbers := rowNumbers[:1] + `"$lastModifiedAtBlock":4,` + rowNumbers[1:]
	f.Add(key, []byte("payload"), []byte("text/plain"), values(rowStrings), values(numbers))
	f.Add(key[:31], []byte(nil), []byte("\xff"), values("null"), values(`{"n":-1}`))
	f.Add(key, []byte(nil), []byte(nil), []byte(strings.Repeat(`{"Values":`, 40)), []byte(`{"Values":{}}{}`))
	f.Fuzz(func(t *testing.T, key, payload, contentType, texts, numbers []byte) {
		r := row{key: key, payload: payload, contentType: contentType, strings: texts, numbers: numbers}
		if e, err := r.entity(rowsEnd); err == nil {
			requireRow(t, key, e)
		}
	})
}

// rowsEnd is the last block of the databases that the rows are of.
const rowsEnd = 1000

func requireRow(t *testing.T, key []byte, e *entity.Entity) {
	require.NoError(t, validate(e))
	require.Equal(t, entity.Key(key), e.Key)
	require.LessOrEqual(t, e.CreatedAtBlock(), e.LastModifiedAtBlock)
	require.LessOrEqual(t, e.LastModifiedAtBlock, uint64(rowsEnd))
	require.LessOrEqual(t, e.Expiration, uint64(entity.MaxBlock))
}

// FuzzArkivRow reads arbitrary rows of a history: a row gives a version that
// fits its place in it, or an error.
func FuzzArkivRow(f *testing.F) {
	key := make([]byte, 32)
	f.Add(key, int64(3), int64(30), int64(0), []byte("payload"), []byte("text/plain"), []byte(rowStrings), []byte(rowNumbers))
	f.Add(key, int64(5), int64(6), int64(5), []byte(nil), []byte(nil), []byte(rowStrings), []byte(rowNumbers))
	f.Add(key[:31], int64(-1), int64(-2), int64(3), []byte(nil), []byte("\xff"), []byte(`{"a":"b","a":"c"}`), []byte(`{"n":-1}`))
	f.Add(key, int64(1)<<62, int64(1)<<62, int64(0), []byte(nil), []byte(nil), []byte(`{}`), []byte(`{"$expiration":9223372036854775808}`))
	f.Fuzz(func(t *testing.T, key []byte, from, to, previous int64, payload, contentType, texts, numbers []byte) {
		columns := row{key: key, payload: payload, contentType: contentType, strings: texts, numbers: numbers}
		r := versionRow{row: columns, from: from, to: to, previousTo: previous}
		e, err := r.entity(rowsEnd)
		if err != nil {
			return
		}
		requireRow(t, key, e)
		require.LessOrEqual(t, uint64(to), e.Expiration)
		expiration, err := expirationOf(numbers)
		require.NoError(t, err)
		require.Equal(t, e.Expiration, expiration)
	})
}
