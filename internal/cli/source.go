package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/url"
	"os"
	"strings"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/feed"
)

// source is something to import: a stream of blocks or of changesets.
type source struct {
	blocks   iter.Seq2[entity.Block, error]
	history  iter.Seq2[entity.Changeset, error]
	progress func() (done, total int64) // in bytes; nil when unknown
	close    func() error
}

// reopen streams the source as blocks, from the first on; it may be called
// again. A history is turned back into the operations that make it.
func (s *source) reopen() iter.Seq2[entity.Block, error] {
	if s.blocks != nil {
		return s.blocks
	}
	return entity.Operations(s.history)
}

// openSource finds out what src is: a store's URL, a block tar, or an Arkiv
// database.
func openSource(ctx context.Context, src string) (*source, error) {
	if g, ok, err := parseGenerated(src); ok || err != nil {
		return openGenerated(g, err)
	}
	if isURL(src) {
		return openStoreSource(ctx, src)
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
		return &source{blocks: t.Blocks(), progress: t.Progress, close: t.Close}, nil
	case "database":
		return openArkivSource(ctx, src)
	}
	return nil, fmt.Errorf("%s is neither a block tar nor a SQLite database; SRC is one of these, a store's URL, or a generated stream such as mendoza:scale=0.01,seed=1", src)
}

func openGenerated(g generated, err error) (*source, error) {
	if err != nil {
		return nil, usageError{err}
	}
	blocks, err := g.blocks(0)
	if err != nil {
		return nil, usageError{err}
	}
	return &source{blocks: blocks, close: func() error { return nil }}, nil
}

// isURL tells a store's URL from a path.
func isURL(s string) bool {
	scheme, _, ok := strings.Cut(s, ":")
	if !ok || strings.ContainsAny(scheme, `/\.`) {
		return false
	}
	_, err := os.Stat(s)
	return errors.Is(err, os.ErrNotExist)
}

// sniff reads the beginning of a file.
func sniff(path string) (kind string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	head := make([]byte, 512)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	head = head[:n]
	switch {
	case strings.HasPrefix(string(head), "SQLite format 3\x00"):
		return "database", nil
	case n == 512 && string(head[257:262]) == "ustar", strings.HasSuffix(path, ".tar"):
		return "tar", nil
	}
	return "", nil
}

func openArkivSource(ctx context.Context, path string) (*source, error) {
	for _, d := range driver.Linked() {
		if d.Info.Dialect != driver.SQLite || !linked(d.Name, false) {
			continue
		}
		u := &url.URL{Scheme: d.Name, Opaque: (&url.URL{Path: path}).EscapedPath()}
		engine, err := d.Open(ctx, u, driver.Options{ReadOnly: true}.WithDefaults())
		if err != nil {
			return nil, fmt.Errorf("open %s: %w", path, err)
		}
		if err := checkArkiv(ctx, engine, d.Name, path); err != nil {
			return nil, errors.Join(err, engine.Close())
		}
		return &source{history: feed.Arkiv(ctx, engine), close: engine.Close}, nil
	}
	return nil, fmt.Errorf("%s: no linked engine reads SQLite files: %w", path, driver.ErrUnsupported)
}

func checkArkiv(ctx context.Context, engine driver.Engine, scheme, path string) error {
	r, err := engine.Snapshot(ctx)
	if err != nil {
		return err
	}
	defer r.Close()
	is, err := feed.IsArkiv(ctx, r)
	if err == nil && !is {
		err = fmt.Errorf("%s is a SQLite database but not Arkiv's; if it is a Varve store, give its URL: %s:%s", path, scheme, path)
	}
	return err
}

func openStoreSource(ctx context.Context, rawURL string) (*source, error) {
	db, err := store.Open(ctx, rawURL, &store.Options{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	ents, err := db.Entities(ctx, store.EntityOptions{})
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &source{history: ents.History(ctx), close: db.Close}, nil
}

// isTar tells whether a destination is a block tar rather than a store.
func isTar(dst string) bool { return strings.HasSuffix(dst, ".tar") && !isURL(dst) }
