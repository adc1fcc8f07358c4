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

	"github.com/varvedb/varve/internal/filesync"
)

// The files of a result set.
const (
	RecordsFile   = "records.jsonl"   // a Record a line, in the order in which they were made
	ManifestsFile = "manifests.jsonl" // a manifest a line, an object with its key as "key"
	BenchFile     = "bench.txt"       // the records in the Go benchmark format, derived
)

// Writer adds to a result set. Several processes may add to one set; within a
// process a Writer is for one goroutine at a time.
type Writer struct {
	dir       string
	records   *lineFile
	manifests *lineFile
	has       map[runID]bool // whether it failed
	keys      map[string]bool
}

// runID is what no two records of a set share.
type runID struct {
	key    string
	repeat int
}

// Create makes a new result set. It fails when the directory has records
// already, which Open would add to.
func Create(dir string) (*Writer, error) {
	w, err := Open(dir)
	if err != nil {
		return nil, err
	}
	if n := len(w.has); n > 0 {
		return nil, errors.Join(fmt.Errorf("result set %q has %d records already: choose another directory", dir, n), w.Close())
	}
	return w, nil
}

// Open opens a result set to add to it, and makes it when it does not exist.
func Open(dir string) (*Writer, error) {
	w := &Writer{dir: dir, has: make(map[runID]bool), keys: make(map[string]bool)}
	if err := w.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("open result set: %w", err), w.Close())
	}
	return w, nil
}

func (w *Writer) open() (err error) {
	if err := os.MkdirAll(w.dir, 0o755); err != nil {
		return err
	}
	if w.records, err = openLines(filepath.Join(w.dir, RecordsFile), w.seeRecord); err != nil {
		return err
	}
	if w.manifests, err = openLines(filepath.Join(w.dir, ManifestsFile), w.seeManifest); err != nil {
		return err
	}
	return filesync.Dir(w.dir)
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
	if err := json.Unmarshal(line, &r); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	id := Record{Experiment: r.Experiment, Name: r.Name, Config: r.Config}
	w.has[runID{id.Key(), r.Repeat}] = r.Error != ""
	return nil
}

func (w *Writer) seeManifest(line []byte) error {
	var m struct {
		Key string `json:"key"`
	}
	if err := json.Unmarshal(line, &m); err != nil {
		return fmt.Errorf("manifest: %w", err)
	}
	w.keys[m.Key] = true
	return nil
}

// Dir returns the directory of the set.
func (w *Writer) Dir() string { return w.dir }

// Has tells whether the set has a record with a key, as Record.Key returns it,
// and a repetition: whether an interrupted run has done it. A record of a run
// that failed counts. What other processes add shows after the next Append.
func (w *Writer) Has(key string, repeat int) bool {
	_, ok := w.has[runID{key, repeat}]
	return ok
}

// Failed tells whether the set's record of a run has an error.
func (w *Writer) Failed(key string, repeat int) bool { return w.has[runID{key, repeat}] }

// Len returns how many runs the set has.
func (w *Writer) Len() int { return len(w.has) }

// Append adds a record, whose manifest the set must have; when it returns, the
// record is on the disk. A record of the same key and repetition replaces the earlier one for readers, as when a
// run that failed is done again.
func (w *Writer) Append(r *Record) error {
	err := r.Check()
	if err == nil && !w.keys[r.Manifest] {
		err = fmt.Errorf("manifest %q is not in the set: store it first, so that the record says what was measured", r.Manifest)
	}
	if err == nil {
		err = w.records.add(func() ([]byte, error) { return json.Marshal(r) })
	}
	if err != nil {
		return fmt.Errorf("append record %q: %w", r.Key(), err)
	}
	return nil
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
	err = w.manifests.add(func() ([]byte, error) {
		if w.keys[key] {
			return nil, nil
		}
		return withKey(key, text), nil
	})
	if err != nil {
		return "", fmt.Errorf("manifest: %w", err)
	}
	return key, nil
}

// withKey puts a key before the members of an object.
func withKey(key string, object []byte) []byte {
	line := fmt.Appendf(nil, `{"key":%q`, key)
	if string(object) != "{}" {
		line = append(line, ',')
	}
	return append(line, object[1:]...)
}

// Close closes the set's files.
func (w *Writer) Close() error {
	var err error
	for _, f := range []*lineFile{w.records, w.manifests} {
		if f != nil {
			err = errors.Join(err, f.close())
		}
	}
	return err
}
