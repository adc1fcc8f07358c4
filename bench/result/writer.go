package result

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/varvedb/varve/internal/filelease"
	"github.com/varvedb/varve/internal/filesync"
)

// The files of a result set.
const (
	RecordsFile   = "records.jsonl"   // a Record a line, in the order in which they were made; earlier ones may be in records.jsonl.gz
	ManifestsFile = "manifests.jsonl" // a manifest a line, an object with its key as "key"; earlier ones as above
	BenchFile     = "bench.txt"       // the records in the Go benchmark format, derived
)

// Writer adds to a result set, whose only writer it is until it is closed. It is for
// one goroutine at a time.
type Writer struct {
	records   *os.File
	manifests *os.File
	has       map[runID]bool // whether it failed
	keys      map[string]bool
}

// runID is what no two records of a set share.
type runID struct {
	key    string
	repeat int
}

// Open opens a result set to add to it, and makes it when it does not exist. A line
// that a process left torn when it ended is cut off. It fails while another process
// adds to the set: what two measure at a time is of neither.
func Open(dir string) (*Writer, error) {
	w := &Writer{has: make(map[runID]bool), keys: make(map[string]bool)}
	if err := w.open(dir); err != nil {
		_ = w.Close() // what was not opened says so
		return nil, fmt.Errorf("open result set %q: %w", dir, err)
	}
	return w, nil
}

func (w *Writer) open(dir string) (err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if w.records, err = openLines(filepath.Join(dir, RecordsFile), w.seeRecord); err != nil {
		return err
	}
	w.manifests, err = openLines(filepath.Join(dir, ManifestsFile), func(line []byte) error {
		key, err := manifestKey(line)
		w.keys[key] = true
		return err
	})
	if err != nil {
		return err
	}
	return filesync.Dir(dir)
}

// openLines opens or makes a file of lines, which is locked until it is closed, and
// sees the lines that it has.
func openLines(path string, see func([]byte) error) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	if err := filelease.Lock(f); err != nil {
		return f, fmt.Errorf("another process adds to it, wait for its end: %w", err)
	}
	whole, torn, err := eachLine(path, see)
	if torn > 0 {
		err = f.Truncate(int64(whole))
	}
	return f, err
}

func (w *Writer) seeRecord(line []byte) error {
	// The rest of a record can be large, and nothing here asks for it.
	var r struct {
		Experiment string `json:"experiment"`
		Name       string `json:"name"`
		Config     Config `json:"config"`
		Repeat     int    `json:"repeat"`
		Error      string `json:"error"`
	}
	err := json.Unmarshal(line, &r)
	id := Record{Experiment: r.Experiment, Name: r.Name, Config: r.Config}
	w.has[runID{id.Key(), r.Repeat}] = r.Error != ""
	return err
}

// Has tells whether the set has a record with a key, as Record.Key returns it,
// and a repetition: whether an interrupted run has done it. A record of a run that
// failed counts.
func (w *Writer) Has(key string, repeat int) bool {
	_, ok := w.has[runID{key, repeat}]
	return ok
}

// Failed tells whether the set's record of a run has an error.
func (w *Writer) Failed(key string, repeat int) bool { return w.has[runID{key, repeat}] }

// Append adds a record, whose manifest the set must have; when it returns, the record
// is on the disk. A record of the same key and repetition replaces the earlier one for
// readers, as when a run that failed is done again.
func (w *Writer) Append(r *Record) error {
	if err := w.add(r); err != nil {
		return fmt.Errorf("append record %q: %w", r.Key(), err)
	}
	w.has[runID{r.Key(), r.Repeat}] = r.Error != ""
	return nil
}

func (w *Writer) add(r *Record) error {
	if err := r.check(); err != nil {
		return err
	}
	if !w.keys[r.Manifest] {
		return fmt.Errorf("manifest %q is not in the set: store it first, so that the record says what was measured", r.Manifest)
	}
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return addLine(w.records, line)
}

// addLine adds all of a line, or nothing where the disk is full.
func addLine(f *os.File, line []byte) error {
	before, err := f.Stat()
	if err != nil {
		return err
	}
	if _, err := f.Write(append(line, '\n')); err != nil {
		return errors.Join(err, f.Truncate(before.Size()))
	}
	return f.Sync()
}

// Manifest stores what describes a run and returns its key for Record.Manifest.
// It is anything that JSON writes as an object; the same one is stored once.
func (w *Writer) Manifest(manifest any) (key string, err error) {
	text, err := json.Marshal(manifest)
	if err != nil {
		return "", fmt.Errorf("manifest: %w", err)
	}
	if !bytes.HasPrefix(text, []byte("{")) {
		return "", fmt.Errorf("manifest: %T is no object in JSON", manifest)
	}
	sum := sha256.Sum256(text)
	key = hex.EncodeToString(sum[:8])
	if w.keys[key] {
		return key, nil
	}
	line := fmt.Appendf(nil, `{"key":%q`, key)
	if string(text) != "{}" {
		line = append(line, ',')
	}
	if err := addLine(w.manifests, append(line, text[1:]...)); err != nil {
		return "", fmt.Errorf("manifest: %w", err)
	}
	w.keys[key] = true
	return key, nil
}

// Close closes the set's files.
func (w *Writer) Close() error { return errors.Join(w.records.Close(), w.manifests.Close()) }
