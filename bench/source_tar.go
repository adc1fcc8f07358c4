package bench

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"

	"github.com/varvedb/varve/internal/filesync"
	"github.com/varvedb/varve/scaler"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/feed"
)

// TarSource returns the history of a block tar, with so many times its entities, as
// scaler.Scale makes them: a data set holds all of it, by a factor of 1 the blocks of the
// tar as they are. The rest is copies of the tar's own blocks with fresh keys, whole and one
// after the other, without end, so that a small tar too can be committed for as long as
// one likes. Expectations go on for the length of one copy. The name follows from what is in the
// tar, which is read once: the cache keeps what it comes to. It fails with store.ErrInvalid for a
// factor of zero and where no block of the tar has an operation.
func TarSource(cache *Cache, path string, factor, seed uint64) (*Source, error) {
	t, err := cache.Tar(path)
	switch {
	case err != nil:
	case factor < 1:
		err = fmt.Errorf("%w: factor 0, want 1 or more", store.ErrInvalid)
	case t.Changing == 0:
		err = fmt.Errorf("%w: no block has an operation", store.ErrInvalid)
	}
	if err != nil {
		return nil, fmt.Errorf("source %s: %w", path, err)
	}
	o := scaler.ScaleOptions{Factor: factor, Seed: seed}
	blocks := func() iter.Seq2[entity.Block, error] { return feed.TarBlocks(path) }
	return &Source{
		Name:     fmt.Sprintf("tar %x factor=%d seed=%d", t.Sum[:16], factor, seed),
		Blocks:   func() iter.Seq2[entity.Block, error] { return scaler.Scale(blocks, o) },
		Rest:     func() iter.Seq2[entity.Block, error] { return scaler.Continue(blocks, o, t.First, t.Last) },
		Changing: t.Changing, rows: factor * t.Rows, payload: factor * t.Payload,
		follow: t.Last + factor*(t.Last-t.First+1),
	}, nil
}

// Tar is what a block tar comes to.
type Tar struct {
	Sum                     []byte // of the file
	First, Last             uint64
	Blocks, Changing        int    // Changing are those with operations
	Entities, Rows, Payload uint64 // as Written counts them
}

// Tar reads a block tar, unless the cache has what one of this path, size and time comes to.
func (c *Cache) Tar(path string) (t Tar, err error) {
	path, err = filepath.Abs(path)
	if err != nil {
		return t, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return t, err
	}
	key := sha256.Sum256(fmt.Appendln(nil, path, info.Size(), info.ModTime().UnixNano()))
	kept := c.path(fmt.Sprintf("scan-%x.json", key[:keyLength/2]))
	if text, err := os.ReadFile(kept); err == nil && json.Unmarshal(text, &t) == nil {
		return t, nil
	}
	if t, err = readTar(path); err != nil {
		return t, err
	}
	text, err := json.Marshal(t)
	return t, errors.Join(err, filesync.Replace(kept, text, 0o644))
}

func readTar(path string) (t Tar, err error) {
	f, err := os.Open(path)
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	sum, begun := sha256.New(), false
	whole := io.TeeReader(f, sum)
	for b, err := range feed.ReadTar(whole) {
		if err != nil {
			return t, err
		}
		if !begun {
			t.First, begun = b.Number, true
		}
		t.Last = b.Number
		t.Blocks++
		if len(b.Ops) > 0 {
			t.Changing++
		}
		entities, rows := Written(&b)
		t.Entities, t.Rows = t.Entities+uint64(entities), t.Rows+uint64(rows)
		for i := range b.Ops {
			t.Payload += uint64(len(b.Ops[i].Content))
		}
	}
	_, err = io.Copy(io.Discard, whole)
	t.Sum = sum.Sum(nil)
	return t, err
}
