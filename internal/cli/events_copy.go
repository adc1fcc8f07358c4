package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/varvedb/varve/internal/eventjson"
	"github.com/varvedb/varve/internal/filesync"
	"github.com/varvedb/varve/internal/source"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/event"
)

// eventsExportCmd writes events to a file.
type eventsExportCmd struct {
	URL  string `arg:"" store:"" help:"Store to read."`
	File string `arg:"" optional:"" default:"-" help:"File to write, one event of JSON a line, compressed when its name ends with .zst; - is standard output. It appears when it is complete."`
	From uint64 `any:"" help:"First position."`
}

// Run exports.
func (c *eventsExportCmd) Run(e *env) error {
	return withEvents(e.ctx, c.URL, readOnly, func(_ *store.DB, evs *store.Events) error {
		head, err := evs.Head(e.ctx)
		if err != nil {
			return err
		}
		if c.File == "-" {
			out := bufio.NewWriterSize(e.stdout, 1<<16)
			return errors.Join(exportEvents(e, evs, out, c.From, head), out.Flush())
		}
		return exportFile(e, evs, c.File, c.From, head)
	})
}

// exportEvents writes the events in a range of positions, and reports progress.
func exportEvents(e *env, evs *store.Events, out io.Writer, from, to uint64) error {
	bar := startBar(e.stderr, "export", "events", int64(to))
	defer bar.Finish()
	bar.Begin(int64(max(from, 1) - 1))
	return eventjson.Write(out, func(yield func(event.Sequenced, error) bool) {
		for ev, err := range evs.Read(e.ctx, event.All(), &event.ReadOptions{From: from}) {
			if err == nil && ev.Position > to {
				return
			}
			bar.Set(int64(ev.Position))
			if !yield(ev, err) {
				return
			}
		}
	})
}

// exportFile writes a file, which appears only when it is complete.
func exportFile(e *env, evs *store.Events, name string, from, to uint64) error {
	err := writeText(name, func(out io.Writer) error { return exportEvents(e, evs, out, from, to) })
	if err != nil {
		return fmt.Errorf("export to %s: %w", name, err)
	}
	return nil
}

// writeText writes a text file, compressed if its name ends with .zst. The file
// appears under its name only when it is complete.
func writeText(name string, write func(io.Writer) error) error {
	return filesync.Write(name, 0o600, func(f *os.File) (err error) {
		out := io.WriteCloser(nopCloser{f})
		if strings.HasSuffix(name, ".zst") {
			if out, err = zstd.NewWriter(f, zstd.WithEncoderConcurrency(1)); err != nil {
				return err
			}
		}
		buffered := bufio.NewWriterSize(out, 1<<16)
		err = write(buffered)
		return errors.Join(err, buffered.Flush(), out.Close())
	})
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// eventsImportCmd imports events from a file.
type eventsImportCmd struct {
	URL      string `arg:"" store:"" help:"Store to write. It is made when it does not exist. Events that it has are skipped, so an interrupted import can be repeated."`
	File     string `arg:"" optional:"" default:"-" help:"Lines of JSON as export writes them, compressed or not; - is standard input."`
	Renumber bool   `help:"Give the events the next positions, whatever positions they have: for files of some events alone, and stores that have others."`
	Batch    int    `min:"1" max:"100000" help:"Events in one transaction." default:"4096"`
}

// Run imports.
func (c *eventsImportCmd) Run(e *env) error {
	in, err := source.OpenText(c.File)
	if err != nil {
		return err
	}
	defer in.Close()
	return withEvents(e.ctx, c.URL, nil, func(_ *store.DB, evs *store.Events) error {
		bar := startBar(e.stderr, "import", "events", 0)
		opts := &store.EventImportOptions{Renumber: c.Renumber, Batch: c.Batch}
		opts.Progress = func(done store.EventsImported) { bar.Set(int64(done.Events + done.Skipped)) }
		done, err := evs.Import(e.ctx, eventjson.Lines(in), opts)
		bar.Finish()
		return errors.Join(err, printJSON(e.stdout, done))
	})
}

// eventsTruncateCmd removes the data of old events.
type eventsTruncateCmd struct {
	URL       string `arg:"" store:"" help:"Store to write."`
	Before    uint64 `any:"" required:"" help:"Position of the first event that stays whole."`
	Archive   string `help:"File to export the events to first. A file that exists must hold them: it is compared." xor:"archive" required:""`
	NoArchive bool   `help:"Remove the data without a copy." xor:"archive" required:""`
	Unread    bool   `help:"Truncate also events that a consumer has not handled."`
}

// Run truncates.
func (c *eventsTruncateCmd) Run(e *env) error {
	return withEvents(e.ctx, c.URL, nil, func(_ *store.DB, evs *store.Events) error {
		from, err := evs.Horizon(e.ctx)
		if err != nil {
			return err
		}
		head, err := evs.Head(e.ctx)
		switch {
		case err != nil:
			return err
		case c.Before > head+1:
			return usageError{fmt.Errorf("--before %d: the last event is %d", c.Before, head)}
		case from >= c.Before:
			return nil
		}
		if err := c.unread(e, evs); err != nil {
			return err
		}
		if !c.NoArchive {
			if err := c.archive(e, evs, from); err != nil {
				return err
			}
		}
		bar := startBar(e.stderr, "truncate", "events", int64(c.Before-1))
		defer bar.Finish()
		bar.Begin(int64(from - 1))
		return evs.Truncate(e.ctx, c.Before, func(at uint64) { bar.Set(int64(at - 1)) })
	})
}

// unread fails when a consumer has not yet handled the events to truncate.
func (c *eventsTruncateCmd) unread(e *env, evs *store.Events) error {
	list, err := evs.Checkpoints(e.ctx)
	for _, one := range list {
		if one.To+1 < c.Before && !c.Unread {
			err = errors.Join(err, fmt.Errorf("consumer %q has handled events up to %d only; let it go on, or truncate with --unread", one.Consumer, one.To))
		}
	}
	return err
}

// archive writes the events from a position on to the file, unless the file
// exists, and compares the file with the store.
func (c *eventsTruncateCmd) archive(e *env, evs *store.Events, from uint64) error {
	_, err := os.Stat(c.Archive)
	if errors.Is(err, fs.ErrNotExist) {
		err = exportFile(e, evs, c.Archive, from, c.Before-1)
	}
	if err != nil {
		return err
	}
	in, err := source.OpenText(c.Archive)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := c.compare(e, evs, eventjson.Lines(in), from); err != nil {
		return fmt.Errorf("archive %s: %w; nothing was truncated", c.Archive, err)
	}
	return nil
}

// compare checks that a file has the events that are to be truncated, from a
// position on.
func (c *eventsTruncateCmd) compare(e *env, evs *store.Events, file iter.Seq2[event.Sequenced, error], from uint64) error {
	next, stop := iter.Pull2(file)
	defer stop()
	for want, err := range evs.Read(e.ctx, event.All(), &event.ReadOptions{From: from}) {
		if err != nil || want.Position >= c.Before {
			return err
		}
		has, err, ok := next()
		for ok && err == nil && has.Position < from { // truncated before
			has, err, ok = next()
		}
		switch {
		case err != nil:
			return err
		case !ok:
			return fmt.Errorf("it ends before event %d", want.Position)
		case has.Position != want.Position || !has.Time.Equal(want.Time) || !has.Equal(&want.Event):
			return fmt.Errorf("it does not have event %d as the store has it", want.Position)
		}
	}
	return nil
}
