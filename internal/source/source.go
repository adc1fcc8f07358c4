// Package source opens sources of blocks: block tars, JSON lines, Arkiv's
// SQLite databases, stores, and generated streams.
package source

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/url"
	"os"
	"strings"

	"github.com/varvedb/varve/internal/engine"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/feed"
)

// Source is a stream of blocks or of changesets. The opener must close it.
type Source struct {
	Blocks   iter.Seq2[entity.Block, error]     // nil where there is a History
	History  iter.Seq2[entity.Changeset, error] // nil where there are Blocks
	Progress func() (done, total int64)         // of a loop over Blocks, in bytes; nil when unknown
	Close    func() error

	// For a generated stream: its counts, its blocks from a number on, and the
	// origin to record in a new store.
	Amount *Amount
	From   func(block uint64) iter.Seq2[entity.Block, error]
	Origin string

	tar      bool                   // it is a block tar
	identity func() (string, error) // two sources with the same identity have the same stream
}

// Reopen streams the source as blocks from the first on; it may be called
// repeatedly. A history is converted back into operations.
func (s *Source) Reopen() iter.Seq2[entity.Block, error] {
	if s.Blocks != nil {
		return s.Blocks
	}
	return entity.Operations(s.History)
}

// Open recognises src as a store's URL, a block tar, JSON lines, an Arkiv
// database, or the text of a generated stream, and opens it.
func Open(ctx context.Context, src string) (*Source, error) {
	if g, ok, err := ParseGenerated(src); ok || err != nil {
		return openGenerated(g, err)
	}
	if IsURL(src) {
		return openStoreSource(ctx, src)
	}
	if src == stdin {
		return openLines(src), nil
	}
	kind, err := sniff(src)
	if err != nil {
		return nil, err
	}
	switch kind {
	case "tar":
		t, err := feed.OpenTar(src)
		if err != nil {
			return nil, err
		}
		return &Source{Blocks: t.Blocks(), Progress: t.Progress, Close: t.Close, tar: true}, nil
	case "lines":
		return openLines(src), nil
	case "database":
		return openArkivSource(ctx, src)
	}
	return nil, fmt.Errorf("%s is neither a block tar nor a SQLite database nor lines of JSON; SRC is one of these, a store's URL, or a generated stream such as mendoza:scale=0.01,seed=1", src)
}

func openGenerated(g Generated, err error) (*Source, error) {
	amount, wrong := g.Plan()
	if err = cmp.Or(err, wrong); err != nil {
		return nil, driver.Of(driver.ErrURL, err)
	}
	return &Source{
		Blocks: g.blocks(0), Close: func() error { return nil }, Amount: &amount, From: g.blocks, Origin: g.origin(),
		identity: func() (string, error) { return g.String(), nil },
	}, nil
}

// IsURL reports whether a text is a store's URL and not a path.
func IsURL(s string) bool {
	scheme, _, ok := strings.Cut(s, ":")
	if !ok || strings.ContainsAny(scheme, `/\.`) {
		return false
	}
	_, err := os.Stat(s)
	return errors.Is(err, os.ErrNotExist)
}

// sniff recognises the kind of a file by its first bytes.
func sniff(path string) (kind string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	head := make([]byte, 512)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return "", err
	}
	head = head[:n]
	switch {
	case strings.HasPrefix(string(head), "SQLite format 3\x00"):
		return "database", nil
	case n == 512 && string(head[257:262]) == "ustar", strings.HasSuffix(path, ".tar"):
		return "tar", nil
	case bytes.HasPrefix(head, zstdMagic), bytes.HasPrefix(bytes.TrimSpace(head), []byte("{")), strings.HasSuffix(path, ".jsonl"):
		return "lines", nil
	}
	return "", nil
}

func openArkivSource(ctx context.Context, path string) (*Source, error) {
	for _, d := range driver.Linked() {
		client := engine.Find(d.Name).Client // which opens servers and no files
		if d.Info.Dialect != driver.SQLite || client != "" && d.Info.Library == client {
			continue
		}
		u := &url.URL{Scheme: d.Name, Opaque: (&url.URL{Path: path}).EscapedPath()}
		eng, err := d.Open(ctx, u, driver.Options{ReadOnly: true}.WithDefaults())
		if err != nil {
			return nil, fmt.Errorf("open %s: %w", path, err)
		}
		if err := checkArkiv(ctx, eng, d.Name, path); err != nil {
			return nil, errors.Join(err, eng.Close())
		}
		return &Source{History: feed.Arkiv(ctx, eng), Close: eng.Close, identity: func() (string, error) { return fileIdentity(path) }}, nil
	}
	return nil, fmt.Errorf("%s: no linked engine reads SQLite files: %w", path, driver.ErrUnsupported)
}

func checkArkiv(ctx context.Context, eng driver.Engine, scheme, path string) error {
	r, err := eng.Snapshot(ctx)
	if err != nil {
		return err
	}
	defer r.Close()
	is, err := feed.IsArkiv(ctx, r)
	if err == nil && !is {
		err = fmt.Errorf("%s is a SQLite database, but not Arkiv's; for a Varve store give its URL, %s:%s", path, scheme, path)
	}
	return err
}

func openStoreSource(ctx context.Context, rawURL string) (*Source, error) {
	db, err := store.Open(ctx, rawURL, &store.Options{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	ents, err := db.Entities(ctx, nil)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &Source{
		History: ents.History(ctx), Close: db.Close,
		identity: func() (string, error) { return storeIdentity(ctx, rawURL, ents) },
	}, nil
}
