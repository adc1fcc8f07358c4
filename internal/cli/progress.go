package cli

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/varvedb/varve/internal/report"
)

// progressBar reports the progress of a long task: on a terminal in one line
// that is rewritten in place, elsewhere as a new line every few seconds, with
// the rate and the time left. Its methods may be called from several
// goroutines.
type progressBar struct {
	mu                   sync.Mutex
	out                  io.Writer
	name, unit           string
	total, doneAtStart   int64
	note                 string
	start, last          time.Time
	every                time.Duration // pause between lines
	columns              int           // of the terminal; 0 is none
	lineFormat, atFinish string
}

// startBar starts a report on out for a task of total units; a total of zero
// means unknown.
func startBar(out io.Writer, name, unit string, total int64) *progressBar {
	now := time.Now()
	b := &progressBar{out: out, name: name, unit: unit, total: total, start: now, last: now, every: 5 * time.Second, lineFormat: "%s\n"}
	if b.columns = columns(out); b.columns > 0 {
		b.every, b.lineFormat, b.atFinish = 200*time.Millisecond, erase+"%s", erase
	}
	return b
}

// erase returns to the start of a terminal's line and clears it.
const erase = "\r\x1b[K"

// columns returns the width of a terminal, or 0 if out is not a terminal.
func columns(out io.Writer) int {
	f, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil || width == 0 {
		return report.Width
	}
	return width
}

// Begin sets how many units were already done before the start. They do not
// count in the rate.
func (b *progressBar) Begin(done int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.doneAtStart = done
}

// Aim changes the total, for a task that grows, and the note after the line; ""
// means no note.
func (b *progressBar) Aim(total int64, note string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.total, b.note = total, note
}

// Set sets how many units are done.
func (b *progressBar) Set(done int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now := time.Now(); now.Sub(b.last) >= b.every {
		b.last = now
		line := b.line(done, now)
		if b.columns > 0 {
			line = cut(line, b.columns-1)
		}
		fmt.Fprintf(b.out, b.lineFormat, line)
	}
}

func (b *progressBar) line(done int64, now time.Time) string {
	rate := float64(done-b.doneAtStart) / now.Sub(b.start).Seconds()
	text := fmt.Sprintf("%s: %d %s, %s/s", b.name, done, b.unit, report.Number(rate))
	if b.note != "" {
		text += ", " + b.note
	}
	if b.total > 0 && rate > 0 && done <= b.total {
		left := time.Duration(float64(b.total-done) / rate * float64(time.Second))
		text += fmt.Sprintf(", %d%%, %s left", 100*done/b.total, left.Round(time.Second))
	}
	return text
}

// Finish removes the line from a terminal. Nothing may be reported afterwards.
func (b *progressBar) Finish() { fmt.Fprint(b.out, b.atFinish) }
