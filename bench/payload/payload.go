// Package payload compares places to keep the payloads of entities: in the
// entity's row, in a separate table, compressed in the row, or in a file next
// to the database. An entity is only a key, a block and some numbers here.
package payload

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/graph"
	"github.com/varvedb/varve/bench/pace"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

// Config configures the number and place of payloads, and for how long entities
// are written.
type Config struct {
	Place     string // row, table, zstd or file
	JSON      bool   // payloads are attributes of generated entities as JSON; otherwise they do not compress
	Bytes     int    // of a payload
	Entities  int    // to write
	PerCommit int
	Path      string // of the file
	Sync      bool   // the file is synced before the transaction commits
	Seed      uint64

	Limit time.Duration // total time of all commits; after it no further one begins
	Reads time.Duration // how long to read
}

// Run writes entities into an empty database, and reads payloads by the keys of
// entities in random order. It compares every payload, and fails with
// bench.ErrMismatch. FileSize is the size of the separate file in bytes.
func Run(ctx context.Context, db *store.DB, cfg Config) (commits bench.Result, reads *pace.Outcome, fileSize int64, err error) {
	k := &keeper{Config: cfg, db: graph.Store{DB: db}}
	err = k.open(ctx)
	if err == nil {
		defer k.close()
		commits, err = k.write(ctx)
	}
	if err == nil {
		reads, err = k.readAll(ctx)
	}
	if err != nil {
		err = fmt.Errorf("payload: %w", err)
	}
	return commits, reads, k.end, err
}

// numbers is how many numbers an entity has.
const numbers = 8

var (
	//go:embed tables.sql
	tables string

	entities = graph.Columns("entities", "entity_key", "block", "n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7", "place", "payload")
	payloads = graph.Columns("payloads", "entity_key", "payload")
)

// keeper keeps the payloads of entities.
type keeper struct {
	Config
	db      graph.Store
	encoder *zstd.Encoder
	decoder *zstd.Decoder
	file    *os.File
	end     int64 // of the file
	written int
}

// open creates the tables. Postgres is told not to compress payloads, as in the
// entity layouts.
func (k *keeper) open(ctx context.Context) (err error) {
	texts := strings.Split(strings.TrimRight(tables, ";\n"), ";")
	if k.db.DB.Engine().Info().Dialect == driver.Postgres {
		for i := range texts {
			texts[i] = strings.ReplaceAll(texts[i], "BLOB", "BYTEA")
		}
		texts = append(texts, "ALTER TABLE entities ALTER COLUMN payload SET STORAGE EXTERNAL", "ALTER TABLE payloads ALTER COLUMN payload SET STORAGE EXTERNAL")
	}
	if err := k.db.Exec(ctx, texts...); err != nil {
		return err
	}
	if k.encoder, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1)); err != nil {
		return err
	}
	if k.decoder, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1)); err != nil {
		return err
	}
	k.file, err = os.Create(k.Path)
	return err
}

func (k *keeper) close() {
	k.decoder.Close()
	_ = k.file.Close() // what was read from it is right
}

// write writes all entities, or as many as the time allows.
func (k *keeper) write(ctx context.Context) (res bench.Result, err error) {
	contents := func(first, n int) [][]byte {
		list := make([][]byte, n)
		for i := range list {
			list[i] = k.content(first + i)
		}
		return list
	}
	in := graph.Insertion[[][]byte]{Total: k.Entities, PerCommit: k.PerCommit, Limit: k.Limit, Make: contents, Write: k.commit}
	res.Outcome, k.written, err = in.Run(ctx)
	res.Entities = uint64(k.written)
	return res, err
}

// commit writes entities with these payloads. The file is written before the
// database refers to it.
func (k *keeper) commit(ctx context.Context, contents [][]byte, first int) error {
	var rows, apart []any
	var grown []byte
	for i, content := range contents {
		nth := first + i
		key := k.key(nth)
		rows = append(rows, key, int64(nth/k.PerCommit))
		for n := range numbers {
			rows = append(rows, int64(nth*numbers+n))
		}
		rows = append(rows, k.end+int64(len(grown)))
		switch k.Place {
		case "table":
			apart, content = append(apart, key, content), nil
		case "zstd":
			content = k.encoder.EncodeAll(content, nil)
		case "file":
			grown, content = append(grown, content...), nil
		}
		rows = append(rows, append([]byte{}, content...)) // NULL is not used
	}
	if k.Place == "file" {
		_, err := k.file.Write(grown)
		if k.end += int64(len(grown)); err == nil && k.Sync {
			err = k.file.Sync()
		}
		if err != nil {
			return err
		}
	}
	return k.db.Write(ctx, func(ctx context.Context, tx driver.Tx) error {
		err := tx.Insert(ctx, entities, rows)
		if err == nil && len(apart) > 0 {
			err = tx.Insert(ctx, payloads, apart)
		}
		return err
	})
}

// readAll reads payloads in random order. Each is compared outside of the
// measured time.
func (k *keeper) readAll(ctx context.Context) (out *pace.Outcome, err error) {
	view, err := k.db.View(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, view.Close()) }()
	return pace.Loop(ctx, pace.Config{Duration: k.Reads, Seed: k.Seed}, func(ctx context.Context, s *pace.Step) error {
		nth := s.Rand.IntN(k.written)
		content, err := k.read(ctx, view, k.key(nth))
		s.Check(func() error {
			if !bytes.Equal(content, k.content(nth)) {
				return fmt.Errorf("%w: payload %d is %d bytes of something else", bench.ErrMismatch, nth, len(content))
			}
			return nil
		})
		return err
	})
}

func (k *keeper) read(ctx context.Context, q driver.Querier, key []byte) (content []byte, err error) {
	text := "SELECT place, payload FROM entities WHERE entity_key = ?"
	if k.Place == "table" {
		text = "SELECT e.place, p.payload FROM entities AS e JOIN payloads AS p ON p.entity_key = e.entity_key WHERE e.entity_key = ?"
	}
	rows, err := q.Query(ctx, text, key)
	if err != nil {
		return nil, err
	}
	var place int64
	if rows.Next() {
		err = rows.Scan(&place, &content)
	}
	if err = errors.Join(err, rows.Err(), rows.Close()); err != nil {
		return nil, err
	}
	switch k.Place {
	case "zstd":
		return k.decoder.DecodeAll(content, nil)
	case "file":
		content = make([]byte, k.Bytes)
		_, err = k.file.ReadAt(content, place)
	}
	return content, err
}

// key returns 32 bytes that look random.
func (k *keeper) key(nth int) []byte { return k.random(nth, 32) }

func (k *keeper) random(nth, n int) []byte {
	var seed [32]byte
	binary.LittleEndian.PutUint64(seed[:], k.Seed)
	binary.LittleEndian.PutUint64(seed[8:], uint64(nth))
	content := make([]byte, n)
	_, _ = rand.NewChaCha8(seed).Read(content) // it never fails
	return content
}

// content returns the payload of an entity. A JSON payload is cut to its
// length, so it may be incomplete.
func (k *keeper) content(nth int) []byte {
	if !k.JSON {
		return k.random(-1-nth, k.Bytes)
	}
	var text bytes.Buffer
	lines := json.NewEncoder(&text)
	gen := bench.GenOptions{Entities: bench.Endless, PerBlock: 1, Seed: k.Seed, Skip: nth * k.Bytes}
	for b, err := range bench.Blocks(bench.Typical.WithPayload(0), gen) {
		if err != nil || text.Len() >= k.Bytes {
			break
		}
		op := &b.Ops[0]
		_ = lines.Encode(map[string]any{"key": op.Key.String(), "owner": op.Owner.String(), "strings": op.StringAttributes, "numbers": op.NumericAttributes}) // into memory
	}
	return text.Bytes()[:k.Bytes]
}
