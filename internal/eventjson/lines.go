package eventjson

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/varvedb/varve/store/event"
)

// ParseSequenced reads one event with its position and time, zero where they are not
// given. No field may be unknown. Errors wrap event.ErrInvalid.
func ParseSequenced(text []byte) (ev event.Sequenced, err error) {
	var e Event
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&e); err != nil {
		return ev, fmt.Errorf("%w: %w", event.ErrInvalid, err)
	}
	if ev.Event, err = e.Event(); err != nil {
		return ev, err
	}
	if ev.Position = uint64(e.Position); e.Time == "" {
		return ev, nil
	}
	if ev.Time, err = time.Parse(time.RFC3339, e.Time); err != nil {
		return ev, fmt.Errorf("%w: time: %w", event.ErrInvalid, err)
	}
	ev.Time = ev.Time.UTC().Truncate(time.Microsecond)
	return ev, nil
}

// Exact returns a stored event in a form from which every byte of it is read back. Of does
// not: an encoder writes JSON without the spaces that it may have.
func Exact(ev *event.Sequenced) Event {
	e := Of(ev)
	if e.Data != nil && !compact(e.Data) {
		e.Data, e.DataBase64 = nil, ev.Data
	}
	if e.Metadata != nil && !compact(e.Metadata) {
		e.Metadata, e.MetadataBase64 = nil, ev.Metadata
	}
	return e
}

func compact(text []byte) bool {
	var b bytes.Buffer
	return json.Compact(&b, text) == nil && bytes.Equal(b.Bytes(), text)
}

// Lines reads events, one a line, with their positions and times. Errors tell the line and
// end the sequence.
func Lines(r io.Reader) iter.Seq2[event.Sequenced, error] {
	return func(yield func(event.Sequenced, error) bool) {
		in := bufio.NewReaderSize(r, 1<<16)
		for n := 1; ; n++ {
			line, end := in.ReadBytes('\n')
			if end != nil && !errors.Is(end, io.EOF) {
				yield(event.Sequenced{}, fmt.Errorf("line %d: %w", n, end))
				return
			}
			if len(bytes.TrimSpace(line)) > 0 {
				ev, err := ParseSequenced(line)
				if err != nil {
					err = fmt.Errorf("line %d: %w", n, err)
				}
				if !yield(ev, err) || err != nil {
					return
				}
			}
			if end != nil {
				return
			}
		}
	}
}

// Write writes events, one a line, so that Lines reads back every byte of them.
func Write(w io.Writer, events iter.Seq2[event.Sequenced, error]) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for ev, err := range events {
		if err == nil {
			err = enc.Encode(Exact(&ev))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
