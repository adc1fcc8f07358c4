package feed

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
)

// stateHead is the last block that the database of sqlite-bitmap-store has.
const stateHead = 1131

// openStateCopy opens a copy of the database of sqlite-bitmap-store after changing it.
func openStateCopy(t testing.TB, statements ...string) *testEngine {
	t.Helper()
	return openCopy(t, filepath.Join(arkivSmall, "sqlite-bitmap-store.db"), statements...)
}

// The database has what the blocks have left, entity by entity, each where it was
// written or updated last. Arkiv deletes what runs out only where a block says so,
// and takes neither extensions nor changes of owner for modifications.
func TestStateEqualsTar(t *testing.T) {
	want, modified := replay{}, map[entity.Key]uint64{}
	blocks := collect(t, ReadTar(bytes.NewReader(readFile(t, tarPath()))))
	for i := range blocks {
		if blocks[i].Number > stateHead {
			break
		}
		_, err := want.apply(&blocks[i])
		require.NoError(t, err)
		for _, op := range blocks[i].Ops {
			if op.Kind == entity.Create || op.Kind == entity.Update {
				modified[op.Key] = blocks[i].Number
			}
		}
	}

	sets := collect(t, Arkiv(t.Context(), openStateCopy(t)))
	got := map[entity.Key]bool{}
	for i, set := range sets {
		require.Equal(t, i == 0, set.Horizon == stateHead)
		require.True(t, i == 0 || set.Block > sets[i-1].Block)
		for _, c := range set.Changes {
			require.Nil(t, c.Old)
			e := *want[c.Key]
			e.LastModifiedAtBlock = modified[c.Key]
			require.Equal(t, &e, c.New)
			require.Equal(t, set.Block, c.New.LastModifiedAtBlock)
			require.False(t, got[c.Key])
			got[c.Key] = true
		}
	}
	require.Len(t, got, len(want))
	require.Equal(t, uint64(stateHead), sets[len(sets)-1].Block)
}

func TestStateLastBlock(t *testing.T) {
	sets := collect(t, Arkiv(t.Context(), openStateCopy(t, `UPDATE last_block SET block = 1500`)))
	require.Equal(t, entity.Changeset{Block: 1500}, sets[len(sets)-1])
	require.Equal(t, uint64(1500), sets[0].Horizon)

	empty := []string{`DELETE FROM payloads`}
	require.Equal(t, []entity.Changeset{{Block: stateHead, Horizon: stateHead}}, collect(t, Arkiv(t.Context(), openStateCopy(t, empty...))))
	empty = append(empty, `DELETE FROM last_block`)
	require.Empty(t, collect(t, Arkiv(t.Context(), openStateCopy(t, empty...))))
}

// A loop that ends early, and one whose context ends, leave nothing open.
func TestStateStops(t *testing.T) {
	for set, err := range Arkiv(t.Context(), openStateCopy(t)) {
		require.NoError(t, err)
		require.NotEmpty(t, set.Changes)
		break
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var failure error
	for _, err := range Arkiv(ctx, openStateCopy(t)) {
		failure = err
		cancel()
	}
	require.ErrorIs(t, failure, context.Canceled)
}

func TestStateRefusesDatabases(t *testing.T) {
	for statement, want := range map[string]string{
		`DROP TABLE payloads`:                                       "not a database of Arkiv's sqlite-bitmap-store: no table payloads",
		`DROP TABLE numeric_attributes_values_bitmaps`:              "sqlite-bitmap-store: no table numeric_attributes_values_bitmaps",
		`UPDATE schema_migrations SET version = 2`:                  "schema version 2 of sqlite-bitmap-store, want 1",
		`UPDATE schema_migrations SET dirty = 1`:                    "interrupted",
		`UPDATE last_block SET block = 1100`:                        "above the last block 1100",
		`UPDATE last_block SET block = -1`:                          "table last_block: block -1",
		`UPDATE payloads SET entity_key = x'0102' WHERE id = 1`:     "entity_key 0x0102: the key has 2 bytes",
		`UPDATE payloads SET content_type = x'ff' WHERE id = 1`:     "content type",
		`UPDATE payloads SET numeric_attributes = '' WHERE id = 1`:  "column numeric_attributes: jsontext: unexpected EOF",
		`UPDATE payloads SET numeric_attributes = x'00ff'`:          "column numeric_attributes: jsontext: invalid character",
		`UPDATE payloads SET string_attributes = '{}' WHERE id = 1`: "attribute $key is missing",
		`UPDATE payloads SET string_attributes = '{"a":"b"}'`:       `unknown object member name "a"`,
		setNumber("$lastModifiedAtBlock", "9999"):                   "attribute $lastModifiedAtBlock is 9999, above the last block 1131",
		setNumber("$lastModifiedAtBlock", "1000"):                   "attribute $createdAtBlock is",
		setNumber("$sequence", "7"):                                 "attribute $sequence 7 does not agree",
		setNumber("$surprise", "1"):                                 `attribute name "$surprise"`,
		setNumber("n", "-1"):                                        `within "/Values/n"`,
		`UPDATE payloads SET numeric_attributes = json_remove(CAST(numeric_attributes AS TEXT), '$.Values."$lastModifiedAtBlock"') WHERE id = 1`: "attribute $lastModifiedAtBlock is missing",
		`UPDATE payloads SET numeric_attributes = CAST(numeric_attributes AS TEXT) || '{}' WHERE id = 1`:                                         "column numeric_attributes: jsontext: invalid character",
	} {
		_, err := drain(t, Arkiv(t.Context(), openStateCopy(t, statement)))
		require.ErrorIs(t, err, ErrFormat, statement)
		require.ErrorContains(t, err, "arkiv database: ")
		require.ErrorContains(t, err, want)
	}
	_, err := drain(t, Arkiv(t.Context(), openStateCopy(t, `ALTER TABLE payloads DROP COLUMN content_type`)))
	require.ErrorContains(t, err, "arkiv database: table payloads: no such column")
	require.NotErrorIs(t, err, ErrFormat)
}

func setNumber(name, value string) string {
	return fmt.Sprintf(`UPDATE payloads SET numeric_attributes = json_set(CAST(numeric_attributes AS TEXT), '$.Values."%s"', %s) WHERE id = 1`, name, value)
}

// Rows that an index has and the table has not are missed.
func TestStateMissesRows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "damaged.db")
	require.NoError(t, os.WriteFile(path, readFile(t, filepath.Join(arkivSmall, "sqlite-bitmap-store.db")), 0o600))
	const index = "payloads_entity_key_index"
	var root int
	e := openTestEngine(t, path)
	queryRow(t, e, `SELECT rootpage FROM sqlite_master WHERE name = '`+index+`'`, &root)
	for _, s := range []string{
		fmt.Sprintf(`PRAGMA writable_schema = ON; DELETE FROM sqlite_master WHERE name = '%s'; PRAGMA schema_version = 100`, index),
		`DELETE FROM payloads WHERE id = 1`,
		fmt.Sprintf(`PRAGMA writable_schema = ON; INSERT INTO sqlite_master VALUES ('index', '%[1]s', 'payloads', %[2]d,
			'CREATE UNIQUE INDEX %[1]s ON payloads (entity_key)'); PRAGMA schema_version = 101`, index, root),
	} {
		_, err := openTestEngine(t, path).db.Exec(s)
		require.NoError(t, err, s)
	}
	_, err := drain(t, Arkiv(t.Context(), openTestEngine(t, path)))
	require.ErrorIs(t, err, ErrFormat)
	require.ErrorContains(t, err, "table payloads: 1 rows that its index has were not found")
}

// Sorted is no more than key and block of each entity, and its payload is fetched
// when it is its turn.
func TestStatePlans(t *testing.T) {
	require.Equal(t, []string{
		"MATERIALIZE sorted",
		"SCAN payloads",
		"USE TEMP B-TREE FOR ORDER BY",
		"SCAN s",
		"SEARCH p USING INTEGER PRIMARY KEY (rowid=?)",
	}, plan(t, openStateCopy(t), stateSQL))
}

// FuzzStateRow reads rows of payloads as somebody may have left them: a row gives an
// entity that the database may have, or an error.
func FuzzStateRow(f *testing.F) {
	const (
		texts = `{"Values":{"$key":"0x0000000000000000000000000000000000000000000000000000000000000000",` +
			`"$owner":"0x0000000000000000000000000000000000000001","$creator":"0x0000000000000000000000000000000000000001","type":"node"}}`
		numbers = `{"Values":{"$sequence":12884967424,"$expiration":30,"$createdAtBlock":3,"$lastModifiedAtBlock":4,"$txIndex":1,"$opIndex":0,"cpu":18446744073709551615}}`
	)
	f.Add(make([]byte, 32), []byte("payload"), []byte("text/plain"), []byte(texts), []byte(numbers))
	f.Add(make([]byte, 31), []byte(nil), []byte("\xff"), []byte(`{"Values":null}`), []byte(`{"Values":{"n":-1}}`))
	f.Add(make([]byte, 32), []byte(nil), []byte(nil), []byte(strings.Repeat(`{"Values":`, 40)), []byte(`{"Values":{}}{}`))
	f.Fuzz(func(t *testing.T, key, payload, contentType, texts, numbers []byte) {
		const last = 1000
		r := row{key: key, payload: payload, contentType: contentType, strings: texts, numbers: numbers}
		e, err := r.entity(last)
		if err != nil {
			return
		}
		require.NoError(t, validate(e))
		require.Equal(t, entity.Key(key), e.Key)
		require.LessOrEqual(t, e.CreatedAtBlock(), e.LastModifiedAtBlock)
		require.LessOrEqual(t, e.LastModifiedAtBlock, uint64(last))
		require.LessOrEqual(t, e.Expiration, uint64(math.MaxInt64))
	})
}

func TestStateNeedsSQLite(t *testing.T) {
	e := openStateCopy(t)
	e.dialect = driver.Postgres
	_, err := drain(t, Arkiv(t.Context(), e))
	require.ErrorIs(t, err, driver.ErrUnsupported)
}
