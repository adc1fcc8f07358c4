package crashtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
)

// record is a line of the journal. It announces a step, acknowledges one, or
// records how unacknowledged steps were found after a crash.
type record struct {
	Step string `json:"step,omitempty"` // kind of the step announced
	Name string `json:"name,omitempty"` // of an append
	Seed uint64 `json:"seed,omitempty"` // that the step is drawn from
	To   uint64 `json:"to,omitempty"`   // block of a rewind or prune

	Ack       bool     `json:"ack,omitempty"`
	Positions []uint64 `json:"positions,omitempty"` // of the events of an acknowledged append
	Conflict  bool     `json:"conflict,omitempty"`  // the append was refused by its condition

	Read uint64 `json:"read,omitempty"` // position at which an event of append Name was read

	Resumed bool     `json:"resumed,omitempty"`
	State   int      `json:"state,omitempty"` // entities: index of the state found
	Found   []string `json:"found,omitempty"` // events: the unacknowledged appends that were found
	Lost    []string `json:"lost,omitempty"`  // events: acknowledged appends that were not
}

// journal is the file in which a worker records its steps. It outlives the
// worker and is never on the disk under test. Without a file it keeps the
// records in memory.
type journal struct {
	mu      sync.Mutex
	file    *os.File
	records []record
}

// openJournal opens or creates a journal and returns its records. It cuts off
// an unfinished last line, because the worker was killed while writing it.
func openJournal(path string) (*journal, []record, error) {
	if path == "" {
		return &journal{}, nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	whole := bytes.LastIndexByte(text, '\n') + 1
	var records []record
	for line := range bytes.Lines(text[:whole]) {
		var r record
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, nil, fmt.Errorf("journal %q: %w", path, err)
		}
		records = append(records, r)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, nil, err
	}
	if err := f.Truncate(int64(whole)); err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return &journal{file: f}, records, nil
}

// announce writes a record; it survives the process, but not a power failure.
func (j *journal) announce(r record) error { return j.write(r, false) }

// acknowledge writes a record and syncs the file.
func (j *journal) acknowledge(r record) error { return j.write(r, true) }

func (j *journal) write(r record, sync bool) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.file == nil {
		j.records = append(j.records, r)
		return nil
	}
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if _, err := j.file.Write(append(line, '\n')); err != nil || !sync {
		return err
	}
	return j.file.Sync()
}

func (j *journal) close() error {
	if j.file == nil {
		return nil
	}
	return j.file.Close()
}
