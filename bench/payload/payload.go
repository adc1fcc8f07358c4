// Package payload measures where the payloads of entities are best kept: in the entity's row, in
// a table of their own, compressed in the row, or in a file beside the database. Of a store there
// is no more than a key, a block and some numbers for each entity.
package payload

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/graph"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

// Places are where payloads may be kept.
const (
	Row   = "row"   // a column of the entity's row
	Table = "table" // a table of their own
	Zstd  = "zstd"  // the row, compressed
	File  = "file"  // a file that only grows, beside the database
)

// Places are all.
var Places = []string{Row, Table, Zstd, File}

// Config says what is kept, where, and for how long entities are written.
type Config struct {
	Place     string
	Content   string // one of Contents
	Bytes     int    // of a payload
	Entities  int    // to write
	PerCommit int
	Path      string // of the file
	Sync      bool   // the file is on the disk before the transaction commits
	Seed      uint64

	Limit time.Duration // of all commits, after which no other begins
	Reads bench.Loop
}

// Outcome is what writes and reads did.
type Outcome struct {
	Commits, Reads bench.Result
	Bytes          int64         // of the file
	Scan           time.Duration // of one attribute of all entities, without payloads
}

// Run writes entities into an empty database, reads payloads by the keys of entities in random
// order, and scans an attribute. It compares every payload, and fails with bench.ErrMismatch.
func Run(ctx context.Context, db *store.DB, cfg Config) (out Outcome, err error) {
	out.Commits, out.Reads = bench.NewResult(), bench.NewResult()
	k, err := open(ctx, db, cfg)
	if err != nil {
		return out, fmt.Errorf("payload: %w", err)
	}
	defer func() { err = errors.Join(err, k.close()) }()
	if err := k.fill(ctx, &out.Commits); err != nil {
		return out, fmt.Errorf("payload: %w", err)
	}
	out.Bytes = k.end
	if err := k.readAll(ctx, &out); err != nil {
		return out, fmt.Errorf("payload: %w", err)
	}
	return out, nil
}

// numbers are those of an entity.
const numbers = 8

// keeper keeps the payloads of entities.
type keeper struct {
	Config
	db             graph.Store
	entities, kept driver.Table // kept is the payloads' own
	query          string       // what finds the payload, or its place in the file

	encoder *zstd.Encoder
	decoder *zstd.Decoder
	file    *os.File
	end     int64 // of the file

	written int
	sum     int64 // of the first number of all
	rows    []any
	beside  []any
	buffer  []byte
	random  *rand.Rand
}

func open(ctx context.Context, db *store.DB, cfg Config) (k *keeper, err error) {
	k = &keeper{Config: cfg, db: graph.Store{DB: db}, random: rand.New(rand.NewPCG(cfg.Seed, 0))}
	if Contents[cfg.Content] == nil {
		return nil, fmt.Errorf("unknown content %q", cfg.Content)
	}
	key, payload := driver.Column{Name: "entity_key", Type: driver.Blob}, driver.Column{Name: "payload", Type: driver.Blob}
	columns := []driver.Column{key, {Name: "block", Type: driver.Int}}
	for i := range numbers {
		columns = append(columns, driver.Column{Name: fmt.Sprint("number", i), Type: driver.Int})
	}
	k.query = "SELECT payload FROM entities WHERE entity_key = ?"
	switch cfg.Place {
	case Row:
		columns = append(columns, payload)
	case Table:
		k.kept = driver.Table{Name: "payloads", Columns: []driver.Column{key, payload}}
		k.query = "SELECT payload FROM payloads WHERE entity_key = ?"
	case Zstd:
		columns = append(columns, payload)
		k.encoder, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedDefault))
		if err == nil {
			k.decoder, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
		}
	case File:
		columns = append(columns, driver.Column{Name: "place", Type: driver.Int}, driver.Column{Name: "bytes", Type: driver.Int})
		k.query = "SELECT place, bytes FROM entities WHERE entity_key = ?"
		k.file, err = os.Create(cfg.Path)
	default:
		err = fmt.Errorf("unknown place %q", cfg.Place)
	}
	if err != nil {
		return nil, err
	}
	k.entities = driver.Table{Name: "entities", Columns: columns}
	dialect := db.Engine().Info().Dialect
	return k, k.db.Exec(ctx, append(ddl(k.entities, dialect), ddl(k.kept, dialect)...)...)
}

// ddl makes a table, whose first column is its key; of none it is nothing. Postgres does not
// compress payloads: so it is in the layouts of entities.
func ddl(t driver.Table, dialect driver.Dialect) (list []string) {
	if t.Name == "" {
		return nil
	}
	blob := cmp.Or(map[driver.Dialect]string{driver.Postgres: "BYTEA"}[dialect], "BLOB")
	text := "CREATE TABLE " + t.Name + " ("
	for i, c := range t.Columns {
		kind := " BIGINT NOT NULL"
		if c.Type == driver.Blob {
			kind = " " + blob + " NOT NULL"
		}
		text += strings.Repeat(", ", min(i, 1)) + c.Name + kind + strings.Repeat(" PRIMARY KEY", 1-min(i, 1))
	}
	list = append(list, text+")")
	if last := t.Columns[len(t.Columns)-1]; dialect == driver.Postgres && last.Type == driver.Blob {
		list = append(list, "ALTER TABLE "+t.Name+" ALTER COLUMN "+last.Name+" SET STORAGE EXTERNAL")
	}
	return list
}

func (k *keeper) close() (err error) {
	if k.decoder != nil {
		k.decoder.Close()
	}
	if k.file != nil {
		err = k.file.Close()
	}
	return err
}

// fill writes all entities, or those that the time is enough for.
func (k *keeper) fill(ctx context.Context, res *bench.Result) error {
	for k.written < k.Entities && (k.written == 0 || res.Latency.Total() < k.Limit) {
		contents := make([][]byte, min(k.PerCommit, k.Entities-k.written))
		for i := range contents {
			contents[i] = k.content(k.written + i)
		}
		if err := res.Time(func() error { return k.commit(ctx, contents) }); err != nil {
			return err
		}
		k.written += len(contents)
		res.Entities = uint64(k.written)
	}
	return nil
}

// commit writes the entities of these payloads. What is in the file is there before the database
// says where.
func (k *keeper) commit(ctx context.Context, contents [][]byte) error {
	k.rows, k.beside, k.buffer = k.rows[:0], k.beside[:0], k.buffer[:0]
	for i, content := range contents {
		nth := k.written + i
		k.rows = append(k.rows, k.key(nth), int64(nth/k.PerCommit))
		for n := range numbers {
			k.rows = append(k.rows, int64(nth*numbers+n))
		}
		k.sum += int64(nth * numbers)
		switch k.Place {
		case Row:
			k.rows = append(k.rows, content)
		case Table:
			k.beside = append(k.beside, k.key(nth), content)
		case Zstd:
			k.rows = append(k.rows, k.encoder.EncodeAll(content, nil))
		case File:
			k.rows = append(k.rows, k.end+int64(len(k.buffer)), int64(len(content)))
			k.buffer = append(k.buffer, content...)
		}
	}
	if k.file != nil {
		if _, err := k.file.Write(k.buffer); err != nil {
			return err
		}
		k.end += int64(len(k.buffer))
		if k.Sync {
			if err := k.file.Sync(); err != nil {
				return err
			}
		}
	}
	return k.db.Write(ctx, func(ctx context.Context, tx driver.Tx) error {
		err := tx.Insert(ctx, &k.entities, k.rows)
		if err == nil && len(k.beside) > 0 {
			err = tx.Insert(ctx, &k.kept, k.beside)
		}
		return err
	})
}

// readAll reads payloads as long as the loop says, each compared when its time no longer counts.
func (k *keeper) readAll(ctx context.Context, out *Outcome) (err error) {
	view, err := k.db.View(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, view.Close()) }()
	for k.Reads() {
		nth := k.random.IntN(k.written)
		var content []byte
		if err := out.Reads.Time(func() (err error) { content, err = k.read(ctx, view, k.key(nth)); return err }); err != nil {
			return err
		}
		if !bytes.Equal(content, k.content(nth)) {
			return fmt.Errorf("%w: payload %d is %d bytes of something else", bench.ErrMismatch, nth, len(content))
		}
	}
	start := time.Now()
	sum, err := driver.QueryInt(ctx, view, "SELECT CAST(SUM(number0) AS BIGINT) FROM entities")
	out.Scan = time.Since(start)
	if err == nil && sum != k.sum {
		err = fmt.Errorf("%w: numbers of %d entities add up to %d, want %d", bench.ErrMismatch, k.written, sum, k.sum)
	}
	return err
}

func (k *keeper) read(ctx context.Context, q driver.Querier, key []byte) (content []byte, err error) {
	rows, err := q.Query(ctx, k.query, key)
	if err != nil {
		return nil, err
	}
	var place, n int64
	dest := []any{&content}
	if k.file != nil {
		dest = []any{&place, &n}
	}
	if rows.Next() {
		err = rows.Scan(dest...)
	}
	if err = errors.Join(err, rows.Err(), rows.Close()); err != nil {
		return nil, err
	}
	switch {
	case k.file != nil:
		content = make([]byte, n)
		_, err = k.file.ReadAt(content, place)
	case k.decoder != nil:
		content, err = k.decoder.DecodeAll(content, nil)
	}
	return content, err
}

// key is 32 bytes that look random.
func (k *keeper) key(nth int) []byte {
	source := rand.NewPCG(k.Seed, uint64(nth)+1)
	key := make([]byte, 0, 32)
	for len(key) < cap(key) {
		key = binary.LittleEndian.AppendUint64(key, source.Uint64())
	}
	return key
}

// content is the payload of an entity.
func (k *keeper) content(nth int) []byte {
	return Contents[k.Content](rand.New(rand.NewPCG(^k.Seed, uint64(nth))), k.Bytes)
}
