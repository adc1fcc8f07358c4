package bench

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"github.com/varvedb/varve/scaler"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/feed"
)

// TarSource returns the history of a block tar, with so many times its entities, as
// scaler.Scale makes them: a data set holds all of it, by a factor of 1 the blocks of the
// tar as they are. The rest is copies of the tar's own blocks with fresh keys, whole and one
// after the other, without end, so that a small tar too can be committed for as long as
// one likes. Expectations go on for the length of one copy. It reads the tar once, since
// the name follows from what is in it. It fails with store.ErrInvalid for a factor of zero
// and where no block of the tar has an operation.
func TarSource(path string, factor, seed uint64) (*Source, error) {
	t, err := scanTar(path)
	switch {
	case err != nil:
	case factor < 1:
		err = fmt.Errorf("%w: factor 0, want 1 or more", store.ErrInvalid)
	case t.changing == 0:
		err = fmt.Errorf("%w: no block has an operation", store.ErrInvalid)
	}
	if err != nil {
		return nil, fmt.Errorf("source %s: %w", path, err)
	}
	o := scaler.ScaleOptions{Factor: factor, Seed: seed}
	blocks := func() iter.Seq2[store.Block, error] { return feed.TarBlocks(path) }
	return &Source{
		Name:     fmt.Sprintf("tar %x factor=%d seed=%d", t.sum[:16], factor, seed),
		Blocks:   func() iter.Seq2[store.Block, error] { return scaler.Scale(blocks, o) },
		Rest:     func() iter.Seq2[store.Block, error] { return scaler.Continue(blocks, o, t.first, t.last) },
		Changing: t.changing, rows: factor * t.rows, payload: factor * t.payload,
		follow: t.last + factor*(t.last-t.first+1),
	}, nil
}

// tarScan is what a block tar comes to.
type tarScan struct {
	sum           []byte // of the file
	first, last   uint64
	changing      int    // blocks with operations
	rows, payload uint64 // as Written counts them
}

func scanTar(path string) (t tarScan, err error) {
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
			t.first, begun = b.Number, true
		}
		t.last = b.Number
		if len(b.Ops) > 0 {
			t.changing++
		}
		_, rows := Written(&b)
		t.rows += uint64(rows)
		for i := range b.Ops {
			t.payload += uint64(len(b.Ops[i].Content))
		}
	}
	_, err = io.Copy(io.Discard, whole)
	t.sum = sum.Sum(nil)
	return t, err
}
