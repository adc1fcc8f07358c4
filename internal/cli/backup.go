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
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/varvedb/varve/internal/dbfile"
	"github.com/varvedb/varve/internal/engine"
	"github.com/varvedb/varve/internal/filesync"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

// A backup is a directory of two files.
const (
	backupRows     = "rows.zst"      // internal/rowfile
	backupManifest = "manifest.json" // manifest
)

// manifest says what a backup is.
type manifest struct {
	Format   int            `json:"backup_format"`
	Engine   string         `json:"engine"` // that it was made from
	Version  string         `json:"engine_version"`
	Made     time.Time      `json:"made"`
	Contents store.Contents `json:"contents"`
	Size     int64          `json:"size"` // bytes of rows.zst
	SHA256   string         `json:"sha256"`
}

const backupFormat = 1

// backupCmd makes a backup.
type backupCmd struct {
	URL      string `arg:"" store:"" name:"src" help:"Store to copy. Others may write to it meanwhile where the engine lets several processes in."`
	Dir      string `arg:"" name:"dst" type:"path" help:"Directory to make. It must not exist."`
	NoVerify bool   `help:"Leave out the verification: restoring the backup into a store of its own and checking that."`
	JSON     bool   `help:"Print the manifest as JSON."`
}

// Run backs up. What is at the destination afterwards is whole, or nothing is.
func (c *backupCmd) Run(e *env) (err error) {
	if exists(c.Dir) {
		return fmt.Errorf("%q exists already; name another directory", c.Dir)
	}
	db, err := store.Open(e.ctx, c.URL, &store.Options{ReadOnly: true, MaxReaderAge: 24 * time.Hour})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	temp, err := os.MkdirTemp(filepath.Dir(c.Dir), "."+filepath.Base(c.Dir)+"-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	m, err := writeBackup(e, db, temp)
	if err != nil {
		return err
	}
	if !c.NoVerify {
		if err := verifyBackup(e, temp, m); err != nil {
			return fmt.Errorf("verify: %w", err)
		}
	}
	if err := e.ctx.Err(); err != nil {
		return err
	}
	if err := publish(temp, c.Dir); err != nil {
		return err
	}
	if c.JSON {
		return printJSON(e.stdout, m)
	}
	fmt.Fprintf(e.stdout, "%s: %s; %d rows, %d bytes, sha256 %s\n", c.Dir, describe(m.Contents), m.Contents.Rows, m.Size, m.SHA256)
	return nil
}

func describe(c store.Contents) string {
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

// writeBackup writes the two files.
func writeBackup(e *env, db *store.DB, dir string) (m manifest, err error) {
	info := db.Engine().Info()
	m = manifest{Format: backupFormat, Engine: info.Name, Version: info.Version, Made: time.Now().UTC()}
	f, err := os.OpenFile(filepath.Join(dir, backupRows), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	sum := sha256.New()
	out := bufio.NewWriterSize(io.MultiWriter(f, sum), 1<<20)
	bar := startBar(e.stderr, "backup", "rows", 0)
	m.Contents, err = db.Backup(e.ctx, out, func(rows uint64) { bar.Set(int64(rows)) })
	bar.Finish()
	if err == nil {
		err = errors.Join(out.Flush(), f.Sync())
	}
	if err != nil {
		return m, err
	}
	if m.Size, err = f.Seek(0, io.SeekCurrent); err != nil {
		return m, err
	}
	m.SHA256 = hex.EncodeToString(sum.Sum(nil))
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return m, err
	}
	return m, filesync.Replace(filepath.Join(dir, backupManifest), append(text, '\n'), 0o600)
}

// publish renames a directory whose files are synced. Like them it is the owner's alone.
func publish(temp, dir string) error {
	if err := filesync.Dir(temp); err != nil {
		return err
	}
	if err := os.Rename(temp, dir); err != nil {
		return err
	}
	return filesync.Dir(filepath.Dir(dir))
}

// verifyBackup restores a backup beside itself and lets the store check itself.
func verifyBackup(e *env, dir string, m manifest) (err error) {
	engine, err := scratchEngine(m)
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp(filepath.Dir(dir), ".varve-verify-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	target := (&url.URL{Scheme: engine, Path: filepath.Join(scratch, "store")}).String()
	db, err := store.Open(e.ctx, target, &store.Options{Durability: weakest(engine)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return restoreInto(e, dir, &m, nil, db)
}

// scratchEngine returns the engine to verify a backup with: the one that it was
// made from where that is linked, or else one with files.
func scratchEngine(m manifest) (string, error) {
	for _, name := range append([]string{m.Engine}, engine.Names()...) {
		if linked(name, false) && (name == m.Engine || !engine.Find(name).Server) {
			return name, nil
		}
	}
	return "", fmt.Errorf("%w: no engine for files is linked; use --no-verify", store.ErrUnsupported)
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
	Dir  string `arg:"" name:"backup" type:"existingdir" help:"Directory that backup made."`
	URL  string `arg:"" store:"" name:"url" help:"Store to make. It must not exist, or be empty."`
	JSON bool   `help:"Print what the backup holds as JSON."`

	At *uint64 `any:"" help:"Return the entities to this block, where the layout keeps history. Events stay as the backup has them." placeholder:"BLOCK"`
}

// Run restores. When it fails nothing is left of what it made.
func (c *restoreCmd) Run(e *env) (err error) {
	m, err := readManifest(c.Dir)
	if err != nil {
		return err
	}
	path, existed := localPath(c.URL)
	if existed {
		return fmt.Errorf("%q exists already; name another store", path)
	}
	defer func() {
		if err != nil && path != "" {
			err = errors.Join(err, dbfile.Remove(path))
		}
	}()
	if head := m.Contents.Head.Number; c.At != nil && (*c.At > head || *c.At < m.Contents.Horizon) {
		return fmt.Errorf("--at=%d: %w: the backup has blocks %d to %d", *c.At, store.ErrBlockRange, m.Contents.Horizon, head)
	}
	if err := c.restore(e, &m); err != nil {
		return err
	}
	if c.JSON {
		return printJSON(e.stdout, m)
	}
	fmt.Fprintf(e.stdout, "%s\n", describe(m.Contents))
	return nil
}

func (c *restoreCmd) restore(e *env, m *manifest) (err error) {
	db, err := store.Open(e.ctx, c.URL, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if m.Contents.Layout != "" {
		e.sayNew(m.Contents.Layout, c.URL)
	}
	return restoreInto(e, c.Dir, m, c.At, db)
}

// localPath returns the file or directory that a URL names, "" for a server, and
// whether it exists.
func localPath(raw string) (path string, exists bool) {
	u, err := driver.ParseURL(raw)
	if err != nil || u.Host != "" || u.Query().Get("host") != "" {
		return "", false
	}
	if path, err = driver.FilePath(u); err != nil {
		return "", false
	}
	if path, err = dbfile.Resolve(path); err != nil {
		return "", false
	}
	_, err = os.Lstat(path)
	return path, err == nil
}

func readManifest(dir string) (m manifest, err error) {
	text, err := os.ReadFile(filepath.Join(dir, backupManifest))
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return m, fmt.Errorf("%w: %s: %w", store.ErrCorrupt, backupManifest, err)
	}
	if m.Format != backupFormat {
		return m, fmt.Errorf("%w: the backup has format %d, this program reads %d", store.ErrUnsupported, m.Format, backupFormat)
	}
	return m, nil
}

// restoreInto fills an empty database, returns it to a block unless that is nil, which
// the manifest says then, and checks it. The file is read twice: first against its
// checksum, so that a damaged one makes no store at all.
func restoreInto(e *env, dir string, m *manifest, at *uint64, db *store.DB) (err error) {
	f, err := os.Open(filepath.Join(dir, backupRows))
	if err != nil {
		return err
	}
	defer f.Close()
	if err := checkSum(e.ctx, f, *m); err != nil {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	bar := startBar(e.stderr, "restore", "rows", int64(m.Contents.Rows))
	_, err = db.Restore(e.ctx, bufio.NewReaderSize(f, 1<<20), &m.Contents, func(rows uint64) { bar.Set(int64(rows)) })
	bar.Finish()
	if err == nil && at != nil {
		m.Contents.Head, err = rewound(e.ctx, db, *at)
	}
	if err != nil {
		return err
	}
	bars := &checkBars{out: e.stderr}
	report, err := db.Check(e.ctx, store.CheckOptions{Progress: bars.show})
	bars.finish()
	if err != nil {
		return err
	}
	return report.Err()
}

// rewound returns the entities of a store to a block.
func rewound(ctx context.Context, db *store.DB, to uint64) (head store.BlockHeader, err error) {
	ents, err := db.Entities(ctx, store.EntityOptions{})
	if err != nil {
		return head, err
	}
	if err := ents.Rewind(ctx, to); err != nil {
		return head, err
	}
	return ents.Head(ctx)
}

func checkSum(ctx context.Context, r io.Reader, m manifest) error {
	sum := sha256.New()
	n, err := io.Copy(sum, readerFunc(func(p []byte) (int, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		return r.Read(p)
	}))
	if err != nil {
		return err
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != m.SHA256 || n != m.Size {
		return fmt.Errorf("%w: %s has %d bytes and sha256 %s, the manifest says %d and %s", store.ErrCorrupt, backupRows, n, got, m.Size, m.SHA256)
	}
	return nil
}

type readerFunc func(p []byte) (int, error)

// Read implements io.Reader.
func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
