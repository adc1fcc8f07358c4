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

	"github.com/varvedb/varve/internal/strictjson"
	"github.com/varvedb/varve/store/event"
)

// MaxLine is the maximum length of an event's line, in bytes: a little more
// than the largest event in base 64.
const MaxLine = 32 << 20

// parse parses one event with its position and time, which are zero if absent.
// Errors wrap event.ErrInvalid.
func parse(text []byte) (ev event.Sequenced, err error) {
	var e Event
	if err := strictjson.Decode(text, &e); err != nil {
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
	if !ev.Time.After(time.Unix(0, 0)) {
		// A time of zero or less would be taken for a missing one: the event
		// would get the current time, and the next line would be refused as
		// older.
		return ev, fmt.Errorf("%w: time %s is not after 1970; correct it, or leave it out", event.ErrInvalid, ev.Time.Format(time.RFC3339Nano))
	}
	return ev, nil
}

// Exact converts a stored event so that every byte of it can be read back. Of
// does not preserve white space in JSON.
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

// Lines reads events, one a line, with their positions and times. It is as
// strict as the service, and buffers at most one line of MaxLine bytes. An
// error names the line and ends the sequence.
func Lines(r io.Reader) iter.Seq2[event.Sequenced, error] {
	return func(yield func(event.Sequenced, error) bool) {
		in := bufio.NewScanner(r)
		in.Buffer(nil, MaxLine+1) // with the line feed
		for n := 1; ; n++ {
			more, err := in.Scan(), in.Err()
			if err == nil && !more {
				return
			}
			text := in.Bytes()
			if err == nil && len(bytes.Trim(text, " \t\r")) == 0 {
				continue
			}
			var ev event.Sequenced
			if err == nil {
				ev, err = parse(text)
			}
			if err != nil {
				err = failure(n, err)
			}
			if !yield(ev, err) || err != nil {
				return
			}
		}
	}
}

// failure adds the line number to an error.
func failure(n int, err error) error {
	place := new(strictjson.Error)
	switch {
	case errors.As(err, &place):
		return fmt.Errorf("line %d, column %d: %w", n, place.Offset+1, err)
	case errors.Is(err, bufio.ErrTooLong):
		err = fmt.Errorf("%w: the line is longer than %d bytes", event.ErrInvalid, MaxLine)
	}
	return fmt.Errorf("line %d: %w", n, err)
}

// Write writes events, one a line, so that Lines can read back every byte of
// them.
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
