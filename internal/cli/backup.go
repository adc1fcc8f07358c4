package cli

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/varvedb/varve/internal/engine"
	"github.com/varvedb/varve/internal/filesync"
	"github.com/varvedb/varve/internal/pgembed"
	"github.com/varvedb/varve/internal/rowfile"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

// manifest describes a backup.
type manifest struct {
	Contents store.BackupInfo `json:"contents"`
	Size     int64            `json:"size"`             // bytes of the file
	SHA256   string           `json:"sha256,omitempty"` // of the file, unless it was only read
}

// backupCmd writes a backup.
type backupCmd struct {
	URL      string `arg:"" store:"" name:"src" help:"Store to copy. Others may write to it meanwhile where the engine lets several processes in."`
	File     string `arg:"" name:"dst" type:"path" help:"File to make. It must not exist."`
	NoVerify bool   `help:"Leave out the verification, which restores the backup into a temporary store and checks that."`
	JSON     bool   `help:"Print the contents of the backup as JSON."`
}

// Run writes the backup. The destination appears complete or not at all.
func (c *backupCmd) Run(e *env) (err error) {
	taken := fmt.Errorf("%q exists already; name another file", c.File)
	if _, err := os.Lstat(c.File); err == nil {
		return taken
	}
	db, err := store.Open(e.ctx, c.URL, &store.Options{ReadOnly: true, MaxReaderAge: 24 * time.Hour})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var m manifest
	err = filesync.Create(c.File, 0o600, func(f *os.File) (err error) {
		if m, err = writeBackup(e, db, f); err != nil || c.NoVerify {
			return err
		}
		if err := verifyBackup(e, f, m, filepath.Dir(c.File)); err != nil {
			return fmt.Errorf("verify: %w", err)
		}
		return e.ctx.Err()
	})
	if errors.Is(err, fs.ErrExist) {
		err = taken // another process was quicker
	}
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(e.stdout, m)
	}
	fmt.Fprintf(e.stdout, "%s: %s; %d rows, %s, sha256 %s\n", c.File, describe(m.Contents), m.Contents.Rows, size(uint64(m.Size)), m.SHA256)
	return nil
}

func describe(c store.BackupInfo) string {
	text := ""
	if c.Layout != "" {
		text = fmt.Sprintf("entities (%s) up to block %d, digest %s", c.Layout, c.Head.Number, c.Head.Digest)
	}
	if c.EventLayout != "" {
		if text != "" {
			text += "; "
		}
		text += fmt.Sprintf("events (%s) up to %d", c.EventLayout, c.EventHead)
	}
	return text
}

func writeBackup(e *env, db *store.DB, f *os.File) (m manifest, err error) {
	sum := sha256.New()
	out := bufio.NewWriterSize(io.MultiWriter(f, sum), 1<<20)
	bar := startBar(e.stderr, "backup", "rows", 0)
	defer bar.Finish()
	if m.Contents, err = db.Backup(e.ctx, out, func(rows uint64) { bar.Set(int64(rows)) }); err != nil {
		return m, err
	}
	if err := out.Flush(); err != nil {
		return m, err
	}
	m.SHA256 = hex.EncodeToString(sum.Sum(nil))
	m.Size, err = f.Seek(0, io.SeekCurrent)
	return m, err
}

// verifyBackup restores a backup into a temporary store and checks that store.
func verifyBackup(e *env, f *os.File, m manifest, dir string) (err error) {
	engine, err := scratchEngine(m.Contents.Engine)
	if err != nil {
		return err
	}
	temp, err := filesync.TempDir(filepath.Join(dir, ".varve-verify"), pgembed.RemoveSockets)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, temp.Remove()) }()
	target := (&url.URL{Scheme: engine, Path: filepath.Join(temp.Path(), "store")}).String()
	db, err := store.Open(e.ctx, target, &store.Options{Durability: weakest(engine)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return restoreInto(e, f, &m, nil, db)
}

// scratchEngine returns the engine that verifies a backup: the backup's own if
// it is linked, otherwise one with files.
func scratchEngine(of string) (string, error) {
	for _, name := range append([]string{of}, engine.Names()...) {
		if linked(name, false) && (name == of || !engine.Find(name).Server) {
			return name, nil
		}
	}
	return "", errors.New("this program has no engine for files to verify the backup with; use --no-verify")
}

func weakest(engine string) driver.Durability {
	d, _ := driver.Lookup(engine)
	if levels := d.Capabilities.Durabilities; len(levels) > 0 {
		return levels[len(levels)-1]
	}
	return ""
}

// restoreCmd restores a backup.
type restoreCmd struct {
	File string `arg:"" name:"backup" type:"path" help:"Backup to restore."`
	URL  string `arg:"" store:"" name:"url" help:"Store to make. It must not exist, or be empty."`
	JSON bool   `help:"Print the contents of the backup as JSON."`

	At *uint64 `any:"" help:"Rewind the entities to this block, where the layout keeps history. Events stay as the backup has them." placeholder:"BLOCK"`
}

// Run restores. On failure it removes everything that it has created.
func (c *restoreCmd) Run(e *env) (err error) {
	f, m, err := openBackup(c.File)
	if err != nil {
		return err
	}
	defer f.Close()
	if head := m.Contents.Head.Number; c.At != nil && (*c.At > head || *c.At < m.Contents.Horizon) {
		return fmt.Errorf("--at=%d: %w: the backup has blocks %d to %d", *c.At, store.ErrBlockRange, m.Contents.Horizon, head)
	}
	at, err := newDraft(c.URL)
	if err != nil {
		return err
	}
	if err = c.restore(e, f, &m, at.url); err == nil {
		err = at.publish()
	}
	if err != nil {
		return errors.Join(err, at.giveUp())
	}
	if c.JSON {
		return printJSON(e.stdout, m)
	}
	fmt.Fprintf(e.stdout, "%s\n", describe(m.Contents))
	return nil
}

func (c *restoreCmd) restore(e *env, f *os.File, m *manifest, url string) (err error) {
	db, err := store.Open(e.ctx, url, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if m.Contents.Layout != "" {
		e.printNewLayout(m.Contents.Layout, c.URL)
	}
	return restoreInto(e, f, m, c.At, db)
}

// openBackup opens a backup file and reads its description.
func openBackup(path string) (f *os.File, m manifest, err error) {
	if f, err = os.Open(path); err != nil {
		return nil, m, err
	}
	st, err := f.Stat()
	if err == nil {
		m.Size = st.Size()
		m.Contents, err = describedIn(f)
	}
	if err != nil {
		return nil, m, errors.Join(err, f.Close())
	}
	return f, m, nil
}

// describedIn reads a file's description.
func describedIn(f *os.File) (b store.BackupInfo, err error) {
	r, err := rowfile.NewReader(f)
	if err == nil {
		err = json.Unmarshal(r.Head, &b)
		r.Close()
	}
	if err != nil {
		return b, fmt.Errorf("%w: %s: %w", store.ErrCorrupt, f.Name(), err)
	}
	return b, nil
}

// restoreInto fills an empty database from a backup, rewinds it to a block
// unless at is nil, and checks it. The manifest describes the result.
func restoreInto(e *env, f *os.File, m *manifest, at *uint64, db *store.DB) error {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	bar := startBar(e.stderr, "restore", "bytes", m.Size)
	restored, err := db.Restore(e.ctx, bufio.NewReaderSize(io.TeeReader(f, &meter{bar: bar}), 1<<20), nil)
	bar.Finish()
	if err == nil && restored.Head != m.Contents.Head {
		err = fmt.Errorf("%w: the backup should hold %s, it holds %s", store.ErrCorrupt, describe(m.Contents), describe(restored))
	}
	if m.Contents = restored; err == nil && at != nil {
		m.Contents.Head, err = rewound(e.ctx, db, *at)
	}
	if err != nil {
		return err
	}
	bars := &checkBars{out: e.stderr}
	report, err := db.Check(e.ctx, &store.CheckOptions{Progress: bars.show})
	bars.finish()
	if err != nil {
		return err
	}
	return report.Err()
}

// meter counts written bytes on a progress bar.
type meter struct {
	bar *progressBar
	n   int64
}

// Write implements io.Writer.
func (m *meter) Write(p []byte) (int, error) {
	m.n += int64(len(p))
	m.bar.Set(m.n)
	return len(p), nil
}

// rewound rewinds a store's entities to a block.
func rewound(ctx context.Context, db *store.DB, to uint64) (head store.BlockHeader, err error) {
	ents, err := db.Entities(ctx, nil)
	if err != nil {
		return head, err
	}
	if err := ents.Rewind(ctx, to); err != nil {
		return head, err
	}
	return ents.Head(ctx)
}
