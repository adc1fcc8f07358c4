package feed

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/testdata"
)

// replay is a store in memory, without a past.
type replay map[entity.Key]*entity.Entity

// apply folds a block and keeps the result.
func (r replay) apply(b *entity.Block) (entity.Changeset, error) {
	prior := make(map[entity.Key]entity.Prior)
	for key := range b.Needs() {
		if e := r[key]; e != nil && e.Expiration > b.Number {
			prior[key] = entity.Prior{Live: e}
		} else if e != nil {
			prior[key] = entity.Prior{Expired: true}
		}
	}
	set, err := entity.Fold(b, prior, entity.Rules{})
	for _, c := range set.Changes {
		if c.New != nil {
			r[c.Key] = c.New
		} else {
			delete(r, c.Key)
		}
	}
	return set, err
}

// replayTar returns the changes of every block of Arkiv's tar, as Arkiv
// returns them: blocks without changes left out, except the last.
func replayTar(t testing.TB) []entity.Changeset {
	t.Helper()
	r := replay{}
	var sets []entity.Changeset
	blocks := collect(t, ReadTar(bytes.NewReader(readFile(t, tarPath()))))
	for i := range blocks {
		set, err := r.apply(&blocks[i])
		require.NoError(t, err)
		if len(set.Changes) > 0 || i == len(blocks)-1 {
			sets = append(sets, set)
		}
	}
	return sets
}

func digest(sets []entity.Changeset) (d entity.Digest) {
	for _, set := range sets {
		d = d.Next(set)
	}
	return d
}

// The tar and the database tell the same history, block by block.
func TestArkivEqualsTar(t *testing.T) {
	fromTar := replayTar(t)
	fromDB := collect(t, Arkiv(t.Context(), openArkivCopy(t)))

	require.Equal(t, testdata.ArkivDigest, digest(fromTar).String())
	require.Equal(t, testdata.ArkivDigest, digest(fromDB).String())

	// More than the digest: the changes themselves, as far as they must agree.
	for _, set := range fromTar {
		for i := range set.Changes {
			c := &set.Changes[i]
			c.Old, c.ContentKept = stub(c.Old), false
		}
	}
	require.Equal(t, len(fromTar), len(fromDB))
	for i := range fromTar {
		require.Equal(t, fromTar[i].Block, fromDB[i].Block)
		require.Equal(t, nilIfEmpty(fromTar[i].Changes), fromDB[i].Changes, "block %d", fromDB[i].Block)
	}
}

func stub(e *entity.Entity) *entity.Entity {
	if e == nil {
		return nil
	}
	return &entity.Entity{Key: e.Key, LastModifiedAtBlock: e.LastModifiedAtBlock}
}

// A loop that ends early, and one whose context ends, leave nothing open, whichever store it is of.
func TestArkivStops(t *testing.T) {
	for _, open := range []func(testing.TB, ...string) *testEngine{openArkivCopy, openStateCopy} {
		for set, err := range Arkiv(t.Context(), open(t)) {
			require.NoError(t, err)
			require.NotEmpty(t, set.Changes)
			break
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		n := 0
		var failure error
		for _, err := range Arkiv(ctx, open(t)) {
			if failure = err; err == nil {
				n++
			}
			cancel()
		}
		require.Equal(t, 1, n)
		require.ErrorIs(t, failure, context.Canceled)
	}
}

func TestArkivLastBlock(t *testing.T) {
	sets := collect(t, Arkiv(t.Context(), openArkivCopy(t, `UPDATE last_block SET block = 1500`)))
	require.Equal(t, entity.Changeset{Block: 1500}, sets[len(sets)-1])
	require.NotEmpty(t, sets[len(sets)-2].Changes)

	empty := []string{`DELETE FROM payloads`, `DELETE FROM last_block`}
	require.Empty(t, collect(t, Arkiv(t.Context(), openArkivCopy(t, empty...))))
	empty = append(empty, `INSERT INTO last_block (block) VALUES (0)`)
	require.Equal(t, []entity.Changeset{{Block: 0}}, collect(t, Arkiv(t.Context(), openArkivCopy(t, empty...))))
}

func TestIsArkiv(t *testing.T) {
	is := func(e *testEngine) bool {
		r, err := e.Snapshot(t.Context())
		require.NoError(t, err)
		defer r.Close()
		ok, err := IsArkiv(t.Context(), r)
		require.NoError(t, err)
		return ok
	}
	require.True(t, is(openArkivCopy(t)))
	require.True(t, is(openStateCopy(t)))
	require.False(t, is(openStateCopy(t, `DROP TABLE payloads`)))
	require.False(t, is(openArkivCopy(t, `DROP TABLE last_block`)))
}

func TestArkivRefusesDatabases(t *testing.T) {
	for _, test := range []struct{ statement, want string }{
		{`DROP TABLE payloads; DROP TABLE last_block`, "not a database of Arkiv's sqlite-store: no table last_block, payloads"},
		{`UPDATE schema_migrations SET version = 1`, "schema version 1 of sqlite-store, want 2"},
		{`UPDATE schema_migrations SET version = 3`, "schema version 3 of sqlite-store, want 2"},
		{`DELETE FROM schema_migrations`, "table schema_migrations: 0 rows"},
		{`UPDATE schema_migrations SET dirty = 1`, "interrupted"},
		{`UPDATE last_block SET block = -1`, "table last_block: block -1"},
		{`DELETE FROM last_block`, "above the last block 0"},
		{`UPDATE last_block SET block = 1100`, "above the last block 1100"},
	} {
		_, err := drain(t, Arkiv(t.Context(), openArkivCopy(t, test.statement)))
		require.ErrorIs(t, err, ErrFormat)
		require.ErrorContains(t, err, "arkiv database: ")
		require.ErrorContains(t, err, test.want)
	}

	_, err := drain(t, Arkiv(t.Context(), openArkivCopy(t, `ALTER TABLE payloads DROP COLUMN content_type`)))
	require.ErrorContains(t, err, "arkiv database: table payloads: no such column")
	postgres := &testEngine{dialect: driver.Postgres}
	_, err = drain(t, Arkiv(t.Context(), postgres))
	require.ErrorIs(t, err, driver.ErrUnsupported)
}

// Each statement damages a version. The error must name its key and block.
func TestArkivRefusesRows(t *testing.T) {
	str, num := "string_attributes", "numeric_attributes"
	replace := func(column, name, value string) string {
		return fmt.Sprintf(`%[1]s = json_set(%[1]s, '$."%[2]s"', %[3]s)`, column, name, value)
	}
	remove := func(column, name string) string {
		return fmt.Sprintf(`%[1]s = json_remove(%[1]s, '$."%[2]s"')`, column, name)
	}
	tests := []struct{ name, set, want string }{
		{"span", `to_block = from_block - 1`, "are not a span"},
		{"lifetime", `to_block = 1 << 40`, "is above attribute $expiration"},
		{"content type", `content_type = x'ff'`, "content type"},
		{"strings not JSON", `string_attributes = 'x'`, "column string_attributes: jsontext: invalid character 'x'"},
		{"strings cut", `string_attributes = substr(string_attributes, 1, 20)`, "column string_attributes: "},
		{"strings twice", `string_attributes = '{"a":"b","a":"b"}'`, `duplicate object member name "a"`},
		{"strings followed", `string_attributes = string_attributes || '{}'`, "invalid character '{' after top-level value"},
		{"numbers not JSON", `numeric_attributes = ''`, "column numeric_attributes: jsontext: unexpected EOF"},
		{"number negative", replace(num, "n", "-1"), `column numeric_attributes: json: at "/n": -1, want uint64`},
		{"number fraction", replace(num, "n", "1.5"), `json: at "/n": 1.5, want uint64`},
		{"no key", remove(str, "$key"), "attribute $key is missing"},
		{"other key", replace(str, "$key", `'0x00'`), `attribute $key is "0x00"`},
		{"no owner", remove(str, "$owner"), "attribute $owner is missing"},
		{"owner", replace(str, "$owner", `'0x12'`), "attribute $owner: address"},
		{"creator", replace(str, "$creator", `'me'`), "attribute $creator: address"},
		{"no expiration", remove(num, "$expiration"), "attribute $expiration is missing"},
		{"no sequence", remove(num, "$sequence"), "attribute $sequence is missing"},
		{"sequence", replace(num, "$sequence", "7"), "attribute $sequence 7 does not agree"},
		{"created", replace(num, "$createdAtBlock", "7"), "does not agree with block 7"},
		{"transaction", replace(num, "$txIndex", "77"), "does not agree"},
		{"operation", replace(num, "$opIndex", "77"), "does not agree"},
		{"unknown synthetic", replace(num, "$surprise", "1"), `attribute name "$surprise"`},
		{"no name", replace(str, "", `'x'`), "no name"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			e := openArkivCopy(t)
			var row int
			var key []byte
			queryRow(t, e, `SELECT rowid FROM payloads WHERE from_block > 1100 ORDER BY from_block, entity_key`, &row)
			queryRow(t, e, fmt.Sprintf(`SELECT entity_key FROM payloads WHERE rowid = %d`, row), &key)
			_, err := e.db.Exec(fmt.Sprintf(`UPDATE payloads SET %s WHERE rowid = %d`, test.set, row))
			require.NoError(t, err)
			_, err = drain(t, Arkiv(t.Context(), e))
			require.ErrorIs(t, err, ErrFormat)
			require.ErrorContains(t, err, fmt.Sprintf("table payloads: entity_key 0x%x, from_block 11", key))
			require.ErrorContains(t, err, test.want)
		})
	}
	for name, test := range map[string]struct{ statement, want string }{
		"short key": {`UPDATE payloads SET entity_key = x'0102' WHERE rowid = (SELECT min(rowid) FROM payloads)`, "entity_key 0x0102, from_block 1001: the key has 2 bytes"},
		"overlap":   {`UPDATE payloads SET to_block = to_block + 1 WHERE from_block = 1001 AND to_block = 1022`, "from_block 1022: the version before it ends at block 1023"},
	} {
		_, err := drain(t, Arkiv(t.Context(), openArkivCopy(t, test.statement)))
		require.ErrorIs(t, err, ErrFormat, name)
		require.ErrorContains(t, err, test.want, name)
	}
	_, err := drain(t, Arkiv(t.Context(), openArkivCopy(t, `UPDATE payloads SET to_block = 'soon' WHERE from_block = 1015`)))
	require.ErrorContains(t, err, "table payloads: ")
	require.ErrorContains(t, err, "soon")
}

// version is a row for made databases.
type version struct {
	key                  byte
	from, to, expiration uint64
}

// makeArkiv makes a database of the given versions.
func makeArkiv(t *testing.T, last uint64, rows ...version) *testEngine {
	e := openArkivCopy(t, `DELETE FROM payloads`, fmt.Sprintf(`UPDATE last_block SET block = %d`, last))
	const insert = `INSERT INTO payloads (entity_key, from_block, to_block, payload, string_attributes, numeric_attributes) VALUES (?, ?, ?, x'01', ?, ?)`
	for _, v := range rows {
		key := sampleKey(v.key)
		strs := fmt.Sprintf(`{"$key":%q,"$owner":%q,"$creator":%q}`, key, entity.Address{1}, entity.Address{2})
		nums := fmt.Sprintf(`{"$createdAtBlock":1,"$txIndex":2,"$opIndex":3,"$sequence":%d,"$expiration":%d,"n":18446744073709551615}`,
			entity.MakeSequence(1, 2, 3), v.expiration)
		_, err := e.db.Exec(insert, key[:], v.from, v.to, strs, nums)
		require.NoError(t, err)
	}
	return e
}

// Each history is told as "block: key old→new": old is the block that made the
// version ended, new the expiration of the version begun.
func TestArkivMerge(t *testing.T) {
	const forEver = entity.MaxBlock
	tests := []struct {
		name string
		last uint64
		rows []version
		want []string
	}{
		{"create", 5, []version{{1, 5, 10, 10}}, []string{"5: 1 -→10"}},
		{"create for ever", 5, []version{{1, 5, forEver, forEver}}, []string{"5: 1 -→9223372036854775807"}},
		{"expiration above all blocks", 5, []version{{1, 5, forEver, 1 << 63}}, []string{"5: 1 -→9223372036854775807"}},
		{"create and delete", 9, []version{{1, 5, 7, 10}}, []string{"5: 1 -→10", "7: 1 5→-", "9:"}},
		{"expires by itself", 12, []version{{1, 5, 10, 10}}, []string{"5: 1 -→10", "12:"}},
		{"update", 7, []version{{1, 5, 7, 10}, {1, 7, 20, 20}}, []string{"5: 1 -→10", "7: 1 5→20"}},
		{"created anew where it expired", 10, []version{{1, 5, 10, 10}, {1, 10, 20, 20}}, []string{"5: 1 -→10", "10: 1 -→20"}},
		{"created anew after it was deleted", 10, []version{{1, 5, 7, 10}, {1, 9, 20, 20}}, []string{"5: 1 -→10", "7: 1 5→-", "9: 1 -→20", "10:"}},
		{"created anew in the block that deleted it", 7, []version{{1, 5, 7, 10}, {1, 7, 20, 20}}, []string{"5: 1 -→10", "7: 1 5→20"}},
		{"no lifetime", 6, []version{{1, 5, 5, 5}}, []string{"5: 1 -→5", "6:"}},
		{"no lifetime after another", 7, []version{{1, 5, 7, 10}, {1, 7, 7, 7}}, []string{"5: 1 -→10", "7: 1 5→7"}},
		{"made and ended in one block", 7, []version{{1, 5, 7, 10}, {1, 7, 7, 9}}, []string{"5: 1 -→10", "7: 1 5→-"}},
		{"only made and ended in one block", 7, []version{{1, 7, 7, 9}}, []string{"7:"}},
		{"to be ended after the last block", 6, []version{{1, 5, 7, 10}}, []string{"5: 1 -→10", "6:"}},
		{
			"keys in order", 7,
			[]version{{3, 5, 7, 10}, {1, 5, 7, 10}, {2, 5, 10, 10}, {4, 7, 10, 10}, {3, 7, 8, 8}, {0, 7, 9, 9}},
			[]string{"5: 1 -→10, 2 -→10, 3 -→10", "7: 0 -→9, 1 5→-, 3 5→8, 4 -→10"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for _, set := range collect(t, Arkiv(t.Context(), makeArkiv(t, test.last, test.rows...))) {
				got = append(got, describe(set))
			}
			require.Equal(t, test.want, got)
		})
	}
}

func describe(set entity.Changeset) string {
	var changes []string
	for _, c := range set.Changes {
		before, after := "-", "-"
		if c.Old != nil {
			before = fmt.Sprint(c.Old.LastModifiedAtBlock)
		}
		if c.New != nil {
			after = fmt.Sprint(c.New.Expiration)
		}
		changes = append(changes, fmt.Sprintf(" %d %s→%s", c.Key[0], before, after))
	}
	return fmt.Sprintf("%d:%s", set.Block, strings.Join(changes, ","))
}

// Arkiv may go on while its database is opened.
func TestArkivMoves(t *testing.T) {
	e := openArkivCopy(t, `PRAGMA journal_mode = WAL`)
	writer, err := sql.Open("sqlite3", databaseOf(t, e))
	require.NoError(t, err)
	defer writer.Close()
	e.onSnapshot = func(n int) error {
		if n == 2 {
			_, err := writer.Exec(`UPDATE last_block SET block = 1264`)
			return err
		}
		return nil
	}
	_, err = drain(t, Arkiv(t.Context(), e))
	require.ErrorContains(t, err, "from block 1263 to 1264")
}

func databaseOf(t *testing.T, e *testEngine) string {
	var path string
	queryRow(t, e, `SELECT file FROM pragma_database_list`, &path)
	return path
}

func TestArkivSnapshotFails(t *testing.T) {
	for n := 1; n <= 2; n++ {
		e := openArkivCopy(t)
		e.onSnapshot = func(i int) error {
			if i == n {
				return errors.New("no reader free")
			}
			return nil
		}
		_, err := drain(t, Arkiv(t.Context(), e))
		require.ErrorContains(t, err, "no reader free")
	}
}

// The indexes that the queries count on are used: no scan in another order
// than the index's, no sort of payloads.
func TestArkivPlans(t *testing.T) {
	e := openArkivCopy(t)
	require.Equal(t, []string{
		"SCAN p USING INDEX payloads_entity_key_index",
		"CORRELATED SCALAR SUBQUERY 1",
		"SEARCH q USING INDEX sqlite_autoindex_payloads_1 (entity_key=? AND from_block<?)",
	}, plan(t, e, versionsSQL))
	require.Equal(t, []string{
		"SEARCH payloads USING INDEX payloads_delete_index (to_block<?)",
		"USE TEMP B-TREE FOR LAST TERM OF ORDER BY",
	}, plan(t, e, endingsSQL, 1263))
}

func plan(t *testing.T, e *testEngine, query string, args ...any) []string {
	rows, err := e.db.Query("EXPLAIN QUERY PLAN "+query, args...)
	require.NoError(t, err)
	defer rows.Close()
	var steps []string
	for rows.Next() {
		var id, parent, unused int
		var step string
		require.NoError(t, rows.Scan(&id, &parent, &unused, &step))
		steps = append(steps, step)
	}
	require.NoError(t, rows.Err())
	return steps
}
