package duckdb

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/varvedb/varve/internal/filesync"
	"github.com/varvedb/varve/internal/sqlstore"
	"github.com/varvedb/varve/store/driver"
)

// guard keeps a copy of the blocks that a checkpoint overwrites.
//
// DuckDB 1.5.5 packs up to 64 pieces of metadata into one block. A checkpoint
// puts its new pieces next to pieces that the header in force still needs: it
// writes such a block in place, and a kill in the middle of that write leaves a
// block whose checksum is wrong, and with it a file that does not open. Only
// metadata are written in this way, and they change at checkpoints alone. So
// after each checkpoint the blocks that the next one may write go to a file
// next to the database, synced, with the header that they belong to. Opening
// puts back the torn blocks, if that header is still in force.
type guard struct {
	path string
	mode os.FileMode // of the file
	out  *os.File
	of   header // that the copy belongs to; nil before the first one

	stays bool // the copy stays when guarding ends; see driver.Keeper's Leave

	peek [headerBytes + 8]byte // from one header's iteration to the other's
}

// The copy is guardMagic, the header, the number of blocks, each block behind its
// number, and a CRC-32C of all that.
const guardMagic = "VarveGd1"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// saved is a block as the copy has it.
type saved struct {
	id   int64
	data []byte
}

func blockOffset(id int64, size int64) int64 { return blocksStart + id*size }

// refresh makes the copy again when a checkpoint has ended since the last one.
// The caller holds the writer, so that no checkpoint runs.
func (g *guard) refresh(ctx context.Context, c *sqlstore.Conn, db *os.File) error {
	if g.fresh(db) {
		return nil
	}
	h, err := readHeader(db)
	if err != nil || h == nil {
		return err
	}
	blocks, err := written(ctx, c)
	if err != nil {
		return err
	}
	text := append([]byte(guardMagic), h...)
	text = append(text, make([]byte, 8)...)
	count := uint64(0)
	for _, id := range blocks {
		data := make([]byte, h.blockSize())
		if n, err := db.ReadAt(data, blockOffset(id, h.blockSize())); n < len(data) {
			if err == io.EOF { // in memory alone yet
				continue
			}
			return err
		}
		text = binary.LittleEndian.AppendUint64(text, uint64(id))
		text = append(text, data...)
		count++
	}
	binary.LittleEndian.PutUint64(text[len(guardMagic)+headerBytes:], count)
	text = binary.LittleEndian.AppendUint32(text, crc32.Checksum(text, castagnoli))
	if err := g.write(text); err != nil {
		return fmt.Errorf("copy the metadata that the next checkpoint writes over: %w", mapOS(err))
	}
	g.of = h
	return nil
}

// fresh tells, by two numbers and without the rest of the headers, whether no
// checkpoint has ended since the copy was made.
func (g *guard) fresh(db *os.File) bool {
	if g.of == nil {
		return false
	}
	if _, err := db.ReadAt(g.peek[:], headerBytes+iterationOffset); err != nil {
		return false
	}
	first, second := binary.LittleEndian.Uint64(g.peek[:]), binary.LittleEndian.Uint64(g.peek[headerBytes:])
	return max(first, second) == g.of.iteration()
}

// written lists the blocks of metadata that have room, which is what checkpoints
// write to.
func written(ctx context.Context, c *sqlstore.Conn) (list []int64, err error) {
	rows, err := c.QueryOnce(ctx, "SELECT block_id FROM pragma_metadata_info() WHERE free_blocks > 0 ORDER BY block_id")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		list = append(list, id)
	}
	return list, c.Mapped(rows.Err())
}

// write replaces the copy. One that is written half counts as none, and no
// checkpoint begins before it is whole.
func (g *guard) write(text []byte) (err error) {
	if g.out == nil {
		if g.out, err = os.OpenFile(g.path, os.O_RDWR|os.O_CREATE, g.mode); err != nil {
			return err
		}
		if err := g.ours(); err != nil {
			err = errors.Join(err, g.out.Close())
			g.out = nil
			return err
		}
		if err := filesync.Dir(filepath.Dir(g.path)); err != nil {
			return err
		}
	}
	if _, err := g.out.WriteAt(text, 0); err != nil {
		return err
	}
	if err := g.out.Truncate(int64(len(text))); err != nil {
		return err
	}
	return g.out.Sync()
}

// ours refuses a file of the copy's name that another program has made, because
// the copy would replace its contents. After a power cut a copy may begin with
// zeros.
func (g *guard) ours() error {
	var head [len(guardMagic)]byte
	n, err := g.out.ReadAt(head[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if begun := head[:n]; !bytes.HasPrefix([]byte(guardMagic), begun) && len(bytes.Trim(begun, "\x00")) > 0 {
		return fmt.Errorf("%q is in the way and not Varve's; move it", g.path)
	}
	return nil
}

// mapOS joins an error of the system with the contract's sentinel.
func mapOS(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w: %w", driver.ErrDiskFull, err)
	}
	return err
}

// read returns the copy, or nothing when there is none that is whole.
func (g *guard) read() (header, []saved, error) {
	text, err := os.ReadFile(g.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	const start = len(guardMagic) + headerBytes + 8
	if err != nil || len(text) < start+4 || string(text[:len(guardMagic)]) != guardMagic {
		return nil, nil, err
	}
	body, sum := text[:len(text)-4], binary.LittleEndian.Uint32(text[len(text)-4:])
	if crc32.Checksum(body, castagnoli) != sum {
		return nil, nil, nil
	}
	h := header(body[len(guardMagic):][:headerBytes])
	var list []saved
	for rest := body[start:]; int64(len(rest)) >= 8+h.blockSize(); rest = rest[8+h.blockSize():] {
		list = append(list, saved{int64(binary.LittleEndian.Uint64(rest)), rest[8:][:h.blockSize()]})
	}
	return h, list, nil
}

// torn returns the blocks of the database that a checkpoint which did not end has
// written half, as they were before it.
func (g *guard) torn(db *os.File) (list []saved, size int64, err error) {
	of, blocks, err := g.read()
	if err != nil || of == nil {
		return nil, 0, err
	}
	h, err := readHeader(db)
	if err != nil || !bytes.Equal(h, of) {
		return nil, 0, err
	}
	data := make([]byte, h.blockSize())
	for _, b := range blocks {
		n, err := db.ReadAt(data, blockOffset(b.id, h.blockSize()))
		if err != nil && err != io.EOF {
			return nil, 0, err
		}
		if (n < len(data) || !intact(data)) && intact(b.data) {
			list = append(list, b)
		}
	}
	return list, h.blockSize(), nil
}

// mend puts torn blocks back. No process but this one may have the database open,
// so it is locked first; the lock ends when db is closed.
func (g *guard) mend(db *os.File) error {
	list, _, err := g.torn(db)
	if err != nil || len(list) == 0 {
		return err
	}
	if err := lock(db); err != nil {
		return err
	}
	list, size, err := g.torn(db) // again: it may have been another's checkpoint
	for _, b := range list {
		if err == nil {
			_, err = db.WriteAt(b.data, blockOffset(b.id, size))
		}
	}
	if err == nil && len(list) > 0 {
		err = db.Sync()
	}
	if err != nil {
		return fmt.Errorf("put back metadata that a checkpoint left half written: %w", mapOS(err))
	}
	return nil
}

// refuse tells a reader that a writer has to mend the database first.
func (g *guard) refuse(db *os.File) error {
	list, _, err := g.torn(db)
	if err == nil && len(list) > 0 {
		err = fmt.Errorf("%w: a checkpoint was interrupted; open it once without read-only", driver.ErrReadOnly)
	}
	return err
}

// close ends guarding. The copy is removed when nothing needs it any more, if it
// is the file that this guard has made or taken over and no other of its name.
func (g *guard) close(remove bool) (err error) {
	if g.out == nil {
		return nil
	}
	if remove && !g.stays {
		err = g.remove()
	}
	err = errors.Join(err, g.out.Close())
	g.out = nil
	return err
}

func (g *guard) remove() error {
	own, err := g.out.Stat()
	if err != nil {
		return err
	}
	there, err := os.Lstat(g.path)
	switch {
	case errors.Is(err, fs.ErrNotExist): // the next one has opened and closed the database
		return nil
	case err != nil || !os.SameFile(own, there):
		return err
	}
	return os.Remove(g.path)
}
