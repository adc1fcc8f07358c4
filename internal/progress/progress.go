// Package progress reports on long work: a bar with rate and time left on a
// terminal, a plain line every few seconds elsewhere.
package progress

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"
)

// lineEvery is the pause between plain lines.
const lineEvery = 5 * time.Second

// Bar follows one piece of work. Its methods may be called from several
// goroutines.
type Bar struct {
	mu           sync.Mutex
	out          io.Writer
	name         string
	unit         string
	total        int64
	start        time.Time
	last         time.Time
	before, done int64

	bars *mpb.Progress // nil when out is no terminal
	bar  *mpb.Bar
}

// Start begins to report on out about work of total units; a total of zero
// means unknown.
func Start(out io.Writer, name, unit string, total int64) *Bar {
	b := &Bar{out: out, name: name, unit: unit, total: total, start: time.Now(), last: time.Now()}
	f, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return b
	}
	b.bars = mpb.New(mpb.WithOutput(out), mpb.WithWidth(50), mpb.WithRefreshRate(200*time.Millisecond))
	b.bar = b.bars.AddBar(total,
		mpb.BarRemoveOnComplete(),
		mpb.PrependDecorators(decor.Name(name+" "), decor.CountersNoUnit("%d/%d "+unit)),
		mpb.AppendDecorators(decor.AverageSpeed(0, " %.0f "+unit+"/s"), decor.Name(" ETA "), decor.AverageETA(decor.ET_STYLE_GO)),
	)
	return b
}

// Begin tells how many units were done before the work began, which do not count
// in the rate.
func (b *Bar) Begin(done int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.before, b.done = done, done
	if b.bar != nil {
		b.bar.SetCurrent(done)
		b.bar.DecoratorAverageAdjust(time.Now())
	}
}

// Set tells how many units are done.
func (b *Bar) Set(done int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done = done
	if b.bar != nil {
		b.bar.SetCurrent(done)
		return
	}
	if now := time.Now(); now.Sub(b.last) >= lineEvery {
		b.last = now
		fmt.Fprintln(b.out, b.line(now))
	}
}

func (b *Bar) line(now time.Time) string {
	rate := float64(b.done-b.before) / now.Sub(b.start).Seconds()
	text := fmt.Sprintf("%s: %d %s, %.0f/s", b.name, b.done, b.unit, rate)
	if b.total > 0 && rate > 0 && b.done <= b.total {
		left := time.Duration(float64(b.total-b.done) / rate * float64(time.Second))
		text += fmt.Sprintf(", %d%%, %s left", 100*b.done/b.total, left.Round(time.Second))
	}
	return text
}

// Finish removes the bar. Nothing may be reported after it.
func (b *Bar) Finish() {
	if b.bar == nil {
		return
	}
	b.bar.Abort(true)
	b.bars.Wait()
}
