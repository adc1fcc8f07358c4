package source

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/feed"
)

// Prepare makes a block tar of a source and returns its path, for programs that
// read the source repeatedly and link other engines. A block tar is used where
// it is. For other sources the tar is created once, in the cache, and named
// after the source. A source without operations is an error.
func Prepare(ctx context.Context, src string, cache *bench.Cache) (path string, err error) {
	s, err := Open(ctx, src)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if s.tar {
		for b, err := range s.Blocks {
			if err != nil {
				return "", err
			}
			if len(b.Ops) > 0 {
				return filepath.Abs(src)
			}
		}
		return "", empty(src)
	}
	identity, err := s.identity()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(identity))
	bar := cache.StartProgress("  "+driver.Redact(src)+" as a block tar", "blocks", 0)
	defer bar.Finish()
	return cache.File(ctx, "source-"+hex.EncodeToString(sum[:12]), Name(src)+".tar", func(f *os.File) error {
		blocks, changing := int64(0), false
		err := feed.NewTarWriter(f).WriteAll(ctx, s.Reopen(), func(b *entity.Block) {
			blocks++
			changing = changing || len(b.Ops) > 0
			bar.Set(blocks)
		})
		if err == nil && !changing {
			err = empty(src)
		}
		return err
	})
}

func empty(src string) error {
	return driver.Of(store.ErrInvalid, fmt.Errorf("%s holds no entities: none of its blocks has an operation", driver.Redact(src)))
}

// Name is the name of a source in results and file names: its file name without
// the extension, or else its text, with only letters, digits, dots, underscores
// and hyphens.
func Name(src string) string {
	name := src
	if _, generated, _ := ParseGenerated(src); !generated {
		if u, err := driver.ParseURL(src); err == nil && u.Scheme != "" {
			if name, err = driver.FilePath(u); err != nil {
				name = u.Host + u.Path // of a server
			}
		}
		name = strings.TrimSuffix(filepath.Base(name), filepath.Ext(name))
	}
	return cmp.Or(strings.Map(func(c rune) rune {
		if c < 0x80 && (c == '.' || c == '_' || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z') {
			return c
		}
		return '-'
	}, name), "source")
}

// fileIdentity identifies one state of a SQLite database.
func fileIdentity(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	text := path
	for _, name := range []string{path, path + "-wal"} {
		st, err := os.Stat(name)
		switch {
		case err == nil:
			text += fmt.Sprintf(" %d %d", st.Size(), st.ModTime().UnixNano())
		case !errors.Is(err, fs.ErrNotExist):
			return "", err
		}
	}
	return text, nil
}

// storeIdentity identifies one state of a store. It includes the horizon, which
// the digest does not cover.
func storeIdentity(ctx context.Context, rawURL string, ents *store.Entities) (string, error) {
	snap, err := ents.At(ctx, store.Head)
	if err != nil {
		return "", err
	}
	head := snap.Head()
	return fmt.Sprintf("%s %d %s %d", driver.Redact(rawURL), head.Number, head.Digest, snap.Horizon()), snap.Close()
}
