package sqlite_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"testing"

	_ "github.com/mattn/go-sqlite3" // the driver "sqlite3"
	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
)

// plain is a database used by hand.
type plain struct {
	pool *sql.DB
	conn *sql.Conn

	strings, numbers, payload, block *sql.Stmt
	begin, commit                    *sql.Stmt
	get                              *sql.Stmt
}

// openPlain opens the database file of a run with the pragmas that the store's
// writer has, beside the idle store.
func openPlain(b *testing.B, r *baseline) *plain {
	b.Helper()
	path := filepath.Join(r.Dir, "varve.db")
	pool, err := sql.Open("sqlite3", (&url.URL{Scheme: "file", Opaque: path}).String())
	require.NoError(b, err)
	ctx := context.Background()
	conn, err := pool.Conn(ctx)
	require.NoError(b, err)
	for _, pragma := range plainPragmas(b, r) {
		_, err := conn.ExecContext(ctx, pragma)
		require.NoError(b, err, pragma)
	}
	p := &plain{pool: pool, conn: conn}
	for dst, text := range map[**sql.Stmt]string{
		&p.begin:   "BEGIN IMMEDIATE",
		&p.commit:  "COMMIT",
		&p.strings: "INSERT INTO string_attributes (entity_key, from_block, to_block, key, value) VALUES (?, ?, ?, ?, ?)",
		&p.numbers: "INSERT INTO numeric_attributes (entity_key, from_block, to_block, key, value) VALUES (?, ?, ?, ?, ?)",
		&p.payload: "INSERT INTO payloads (entity_key, from_block, to_block, payload, content_type, string_attributes, numeric_attributes) VALUES (?, ?, ?, ?, ?, ?, ?)",
		&p.block:   "INSERT INTO varve_blocks (block, digest) VALUES (?, ?)",
		&p.get: "SELECT from_block, payload, content_type, string_attributes, numeric_attributes FROM payloads " +
			"WHERE entity_key = ? AND from_block <= ? AND to_block > ? ORDER BY from_block DESC LIMIT 1",
	} {
		*dst, err = conn.PrepareContext(ctx, text)
		require.NoError(b, err, text)
	}
	return p
}

// plainPragmas are the settings that the store's writer reads back, but for
// the checkpoint, which SQLite does by itself.
func plainPragmas(b *testing.B, r *baseline) []string {
	settings, err := r.DB.Settings(b.Context())
	require.NoError(b, err)
	var list []string
	for _, s := range settings {
		switch s.Name {
		case "journal_mode", "synchronous", "cache_size", "mmap_size", "busy_timeout", "temp_store":
			list = append(list, fmt.Sprintf("PRAGMA %s = %s", s.Name, s.Value))
		}
	}
	require.Len(b, list, 6)
	return append(list, fmt.Sprintf("PRAGMA wal_autocheckpoint = %d", plainCheckpoint))
}

func (p *plain) close(b *testing.B) {
	b.Helper()
	require.NoError(b, errors.Join(p.conn.Close(), p.pool.Close()))
}

// apply writes a block of creations in one transaction, row by row.
func (p *plain) apply(blk *store.Block) error {
	if _, err := p.begin.Exec(); err != nil {
		return err
	}
	for i := range blk.Ops {
		if err := p.create(blk, &blk.Ops[i]); err != nil {
			return err
		}
	}
	var digest entity.Digest
	if _, err := p.block.Exec(int64(blk.Number), digest[:]); err != nil {
		return err
	}
	_, err := p.commit.Exec()
	return err
}

// attributes are those of a new entity, with what the store knows of it.
func attributes(blk *store.Block, op *store.Op) (texts map[string]string, numbers map[string]uint64) {
	owner := op.Owner.String()
	texts = map[string]string{entity.AttrKey: op.Key.String(), entity.AttrOwner: owner, entity.AttrCreator: owner}
	maps.Copy(texts, op.StringAttributes)
	numbers = map[string]uint64{
		entity.AttrCreatedAtBlock: blk.Number, entity.AttrExpiration: entity.AddBlocks(blk.Number, op.BTL),
		entity.AttrSequence: entity.MakeSequence(blk.Number, op.TxIndex, op.OpIndex),
		entity.AttrTxIndex:  uint64(op.TxIndex), entity.AttrOpIndex: uint64(op.OpIndex),
	}
	maps.Copy(numbers, op.NumericAttributes)
	return texts, numbers
}

func (p *plain) create(blk *store.Block, op *store.Op) error {
	key, from, to := op.Key[:], int64(blk.Number), int64(entity.AddBlocks(blk.Number, op.BTL))
	texts, numbers := attributes(blk, op)
	for name, value := range texts {
		if _, err := p.strings.Exec(key, from, to, name, value); err != nil {
			return err
		}
	}
	for name, value := range numbers {
		if _, err := p.numbers.Exec(key, from, to, name, int64(value)); err != nil {
			return err
		}
	}
	textJSON, badTexts := json.Marshal(texts)
	numberJSON, badNumbers := json.Marshal(numbers)
	if err := errors.Join(badTexts, badNumbers); err != nil {
		return err
	}
	_, err := p.payload.Exec(key, from, to, op.Content, op.ContentType, string(textJSON), string(numberJSON))
	return err
}

// plainRow is what a read by key gives.
type plainRow struct {
	from        int64
	payload     []byte
	contentType string
	strings     map[string]string
	numbers     map[string]uint64
}

// read reads a row at a block, in the transaction that is open.
func (p *plain) read(key store.Key, block int64, decode bool) (r plainRow, err error) {
	var texts, numbers []byte
	err = p.get.QueryRow(key[:], block, block).Scan(&r.from, &r.payload, &r.contentType, &texts, &numbers)
	if err != nil || !decode {
		return r, err
	}
	return r, errors.Join(json.Unmarshal(texts, &r.strings), json.Unmarshal(numbers, &r.numbers))
}
