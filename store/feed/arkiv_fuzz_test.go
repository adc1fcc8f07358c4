package feed

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/entity"
)

// FuzzArkivRow reads rows of payloads of either store as somebody may have left them: a row gives a
// version that fits its place in the history, or an entity that the state may have, or an error.
func FuzzArkivRow(f *testing.F) {
	key := make([]byte, 32)
	const (
		strings = `{"$key":"0x0000000000000000000000000000000000000000000000000000000000000000",` +
			`"$owner":"0x0000000000000000000000000000000000000001","$creator":"0x0000000000000000000000000000000000000001","type":"node"}`
		numbers = `{"$sequence":12884967424,"$expiration":30,"$createdAtBlock":3,"$txIndex":1,"$opIndex":0,"cpu":18446744073709551615}`
	)
	f.Add(key, int64(3), int64(30), int64(0), []byte("payload"), []byte("text/plain"), []byte(strings), []byte(numbers))
	f.Add(key, int64(5), int64(6), int64(5), []byte(nil), []byte(nil), []byte(strings), []byte(numbers))
	f.Add(key[:31], int64(-1), int64(-2), int64(3), []byte(nil), []byte("\xff"), []byte(`{"a":"b","a":"c"}`), []byte(`{"n":-1}`))
	f.Add(key, int64(1)<<62, int64(1)<<62, int64(0), []byte(nil), []byte(nil), []byte(`{}`), []byte(`{"$expiration":9223372036854775808}`))
	f.Add(key, int64(3), int64(4), int64(0), []byte("payload"), []byte("text/plain"), []byte(`{"Values":`+strings+`}`), []byte(`{"Values":`+numbers[:1]+`"$lastModifiedAtBlock":4,`+numbers[1:]+`}`))
	f.Add(key, int64(3), int64(4), int64(0), []byte(nil), []byte(nil), []byte(`{"Values":null}`), []byte(`{"Values":{}}{}`))
	f.Fuzz(func(t *testing.T, key []byte, from, to, previous int64, payload, contentType, strings, numbers []byte) {
		const last = 1000
		columns := row{key: key, payload: payload, contentType: contentType, strings: strings, numbers: numbers}
		if e, err := columns.entity(last); err == nil {
			require.NoError(t, validate(e))
			require.Equal(t, entity.Key(key), e.Key)
			require.LessOrEqual(t, e.CreatedAtBlock(), e.LastModifiedAtBlock)
			require.LessOrEqual(t, e.LastModifiedAtBlock, uint64(last))
			require.LessOrEqual(t, e.Expiration, uint64(entity.MaxBlock))
		}
		r := versionRow{row: columns, from: from, to: to, previousTo: previous}
		e, err := r.entity(last)
		if err != nil {
			return
		}
		require.NoError(t, validate(e))
		require.Equal(t, entity.Key(key), e.Key)
		require.LessOrEqual(t, e.CreatedAtBlock(), e.LastModifiedAtBlock)
		require.LessOrEqual(t, e.LastModifiedAtBlock, uint64(last))
		require.LessOrEqual(t, uint64(to), e.Expiration)
		expiration, err := expirationOf(numbers)
		require.NoError(t, err)
		require.Equal(t, e.Expiration, expiration)
	})
}
