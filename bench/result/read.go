package result

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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

	// Peers are what others did, as ReadAll finds it beside the records.
	Peers []Record

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

// Load reads a result set, or a file in the benchmark format when the path is
// that of a file.
func Load(path string) (*Results, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.IsDir() {
		return Read(path)
	}
	return ReadBench(f, path)
}

// Read reads a result set. A last line that a crash left torn is passed over
// with a warning; a broken line before it is an error.
func Read(dir string) (*Results, error) {
	r := &Results{Manifests: make(map[string]json.RawMessage)}
	at := make(map[runID]int)
	err := r.readFile(dir, RecordsFile, func(line []byte) error {
		var rec Record
		if err := json.Unmarshal(line, &rec); err != nil {
			return err
		}
		id := runID{rec.Key(), rec.Repeat}
		i, again := at[id]
		if !again {
			at[id] = len(r.Records)
			r.Records = append(r.Records, rec)
			return nil
		}
		if r.Records[i].Error == "" && !rec.Over { // else it was done again for a reason
			r.warn("%s: %s, repetition %d, is there more than once; the last one counts", RecordsFile, id.key, id.repeat)
		}
		r.Records[i] = rec
		return nil
	})
	if err == nil {
		err = r.readFile(dir, ManifestsFile, func(line []byte) error {
			key, err := manifestKey(line)
			r.Manifests[key] = bytes.Clone(line)
			return err
		})
		if errors.Is(err, os.ErrNotExist) {
			err = nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read result set %q: %w", dir, err)
	}
	return r, nil
}

func (r *Results) readFile(dir, name string, see func([]byte) error) error {
	_, torn, err := eachLine(filepath.Join(dir, name), see)
	if torn > 0 {
		r.warn("%s: the last line is torn, %d bytes are passed over: a process ended while it wrote them", name, torn)
	}
	return err
}

// packed ends the name of a file of lines that is kept small: what came before those of
// the file without it, compressed by gzip, in one piece or several.
const packed = ".gz"

// eachLine calls see with every whole line of a file, after those that are packed, and
// returns how many bytes those of the file are and how many a torn one after them has.
func eachLine(path string, see func([]byte) error) (whole, torn int, err error) {
	earlier, err := unpack(path + packed)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return 0, 0, err
	}
	if _, err := wholeLines(path+packed, earlier, see); err != nil {
		return 0, 0, err
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) && earlier != nil {
		return 0, 0, nil
	}
	if err != nil {
		return 0, 0, err
	}
	whole, err = wholeLines(path, text, see)
	if err != nil {
		return 0, 0, err
	}
	return whole, len(text) - whole, nil
}

func unpack(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	in, err := gzip.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	text, err := io.ReadAll(in)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	return text, nil
}

func wholeLines(path string, text []byte, see func([]byte) error) (whole int, err error) {
	whole = bytes.LastIndexByte(text, '\n') + 1
	number := 0
	for line := range bytes.Lines(text[:whole]) {
		number++
		if err := see(line[:len(line)-1]); err != nil {
			return 0, fmt.Errorf("%s:%d: %w; remove the line to go on without it", filepath.Base(path), number, err)
		}
	}
	return whole, nil
}

func manifestKey(line []byte) (string, error) {
	var m struct {
		Key string `json:"key"`
	}
	err := json.Unmarshal(line, &m)
	return m.Key, err
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
