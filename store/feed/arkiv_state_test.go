package feed

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/entity"
)

// stateHead is the last block that the database of sqlite-bitmap-store has.
const stateHead = 1131

// openStateCopy opens a copy of the database of sqlite-bitmap-store after changing it.
func openStateCopy(t testing.TB, statements ...string) *testEngine {
	t.Helper()
	return openCopy(t, filepath.Join(arkivSmall, "sqlite-bitmap-store.db"), statements...)
}

// The database has the last state of each entity, in the block that wrote or
// updated it last. Arkiv deletes expired entities only where a block says so,
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

func TestStateRefusesDatabases(t *testing.T) {
	for statement, want := range map[string]string{
		`DROP TABLE numeric_attributes_values_bitmaps`:              "sqlite-bitmap-store: no table numeric_attributes_values_bitmaps",
		`UPDATE schema_migrations SET version = 2`:                  "schema version 2 of sqlite-bitmap-store, want 1",
		`UPDATE last_block SET block = 1100`:                        "above the last block 1100",
		`UPDATE payloads SET entity_key = x'0102' WHERE id = 1`:     "entity_key 0x0102: the key has 2 bytes",
		`UPDATE payloads SET numeric_attributes = x'00ff'`:          "column numeric_attributes: jsontext: invalid character",
		`UPDATE payloads SET string_attributes = '{}' WHERE id = 1`: "attribute $key is missing",
		`UPDATE payloads SET string_attributes = '{"a":"b"}'`:       `at "/a": unknown object member name`,
		setNumber("$lastModifiedAtBlock", "9999"):                   "attribute $lastModifiedAtBlock is 9999, above the last block 1131",
		setNumber("$lastModifiedAtBlock", "1000"):                   "attribute $createdAtBlock is",
		setNumber("n", "-1"):                                        `at "/Values/n": -1`,
		`UPDATE payloads SET numeric_attributes = json_remove(CAST(numeric_attributes AS TEXT), '$.Values."$lastModifiedAtBlock"') WHERE id = 1`: "attribute $lastModifiedAtBlock is missing",
		`UPDATE payloads SET numeric_attributes = CAST(numeric_attributes AS TEXT) || '{}' WHERE id = 1`:                                         "column numeric_attributes: jsontext: invalid character",
	} {
		_, err := drain(t, Arkiv(t.Context(), openStateCopy(t, statement)))
		require.ErrorIs(t, err, ErrFormat, statement)
		require.ErrorContains(t, err, "arkiv database: ")
		require.ErrorContains(t, err, want)
	}
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

// Only key and block of each entity are sorted, and its payload is fetched when
// it is needed.
func TestStatePlans(t *testing.T) {
	require.Equal(t, []string{
		"MATERIALIZE sorted",
		"SCAN payloads",
		"USE TEMP B-TREE FOR ORDER BY",
		"SCAN s",
		"SEARCH p USING INTEGER PRIMARY KEY (rowid=?)",
	}, plan(t, openStateCopy(t), stateSQL))
}
