package result

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Results is what a result set holds, or a file in the benchmark format.
type Results struct {
	// Records are in the order in which they were made, one for each key and
	// repetition: the last one.
	Records []Record

	// Manifests are the objects as they were stored, with their "key" in them.
	Manifests map[string]json.RawMessage

	// Units are directions that a benchmark file states; see Direction.
	Units map[string]Direction

	// Warnings say what was passed over, for readers.
	Warnings []string
}

// Direction returns which values of a unit are good ones: what the file said, or
// else what Better says.
func (r *Results) Direction(unit string) Direction {
	if d, ok := r.Units[unit]; ok {
		return d
	}
	return Better(unit)
}

// Read reads a result set. A last line that a crash left torn is passed over
// with a warning; a broken line before it is an error.
func Read(dir string) (*Results, error) {
	r := &Results{Manifests: make(map[string]json.RawMessage)}
	if err := r.readRecords(dir); err != nil {
		return nil, fmt.Errorf("read result set %q: %w", dir, err)
	}
	err := r.readFile(dir, ManifestsFile, r.addManifest)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("read result set %q: %w", dir, err)
	}
	return r, nil
}

// Load reads a result set, or a file in the benchmark format when the path is
// that of a file.
func Load(path string) (*Results, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return Read(path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ReadBench(f, path)
}

func (r *Results) readRecords(dir string) error {
	at := make(map[runID]int)
	return r.readFile(dir, RecordsFile, func(line []byte) error {
		var rec Record
		if err := json.Unmarshal(line, &rec); err != nil {
			return err
		}
		id := runID{rec.Key(), rec.Repeat}
		if i, ok := at[id]; ok {
			if r.Records[i].Error == "" { // else it was done again because it had failed
				r.warn("%s: %s, repetition %d, is there more than once; the last one counts", RecordsFile, id.key, id.repeat)
			}
			r.Records[i] = rec
			return nil
		}
		at[id] = len(r.Records)
		r.Records = append(r.Records, rec)
		return nil
	})
}

func (r *Results) addManifest(line []byte) error {
	var m struct {
		Key string `json:"key"`
	}
	if err := json.Unmarshal(line, &m); err != nil {
		return err
	}
	r.Manifests[m.Key] = bytes.Clone(line)
	return nil
}

// readFile calls see with the lines of a file.
func (r *Results) readFile(dir, name string, see func([]byte) error) error {
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return err
	}
	number := 0
	n, err := eachLine(text, func(line []byte) error {
		number++
		return see(line)
	})
	if err != nil {
		return fmt.Errorf("%s:%d: %w; remove the line to go on without it", name, number, err)
	}
	if torn := len(text) - n; torn > 0 {
		r.warn("%s: the last line is torn, %d bytes are passed over: a process ended while it wrote them", name, torn)
	}
	return nil
}

func (r *Results) warn(format string, args ...any) {
	r.Warnings = append(r.Warnings, fmt.Sprintf(format, args...))
}

// Manifest reads the manifest of a record into a struct.
func (r *Results) Manifest(of *Record, into any) error {
	text, ok := r.Manifests[of.Manifest]
	if !ok {
		return fmt.Errorf("manifest %q of %s is not in the set", of.Manifest, of.Key())
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("manifest %q of %s: %w", of.Manifest, of.Key(), err)
	}
	return nil
}
