package top

import (
	"context"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/gdamore/tcell/v2"
)

// history is how many intervals the bars show.
const history = 60

// view is what is shown of the last two samples.
type view struct {
	source      Source
	before, now *sample
	longest     []float64 // p99 of the commits of the last intervals
}

// next takes a sample in.
func (v *view) next(s *sample) {
	v.before, v.now = v.now, s
	if v.before == nil {
		return
	}
	p99 := math.NaN()
	for _, t := range between(v.before, v.now, "varve_block_seconds") {
		p99 = t.quantile(0.99)
	}
	v.longest = append(v.longest, p99)
	v.longest = v.longest[max(0, len(v.longest)-history):]
}

// rate is how much a counter grew in a second.
func (v *view) rate(name string) float64 {
	return (v.now.value(name) - v.before.value(name)) / v.seconds()
}

func (v *view) seconds() float64 { return v.now.at.Sub(v.before.at).Seconds() }

// lines are the view as text.
func (v *view) lines() []string {
	build := v.now.labels("varve_build_info")
	head := fmt.Sprintf("varve %s  %s  %s   q ends", build["version"], v.source.URL, v.now.at.Format(time.TimeOnly))
	if v.before == nil {
		return []string{head, "", "waiting for a second look"}
	}
	n := func(name string) string { return count(v.now.value(name)) }
	b := func(name string) string { return bytes(v.now.value(name)) }
	list := []string{
		head, "",
		"head     block " + n("varve_head_block") + "   events " + n("varve_event_head_position") + "   replica lag " + seconds(v.now.value("varve_replica_lag_seconds")),
	}
	for _, t := range between(v.before, v.now, "varve_block_seconds") {
		list = append(list, fmt.Sprintf("commits  %s/s   p50 %s   p99 %s", count(t.count/v.seconds()), seconds(t.quantile(0.5)), seconds(t.quantile(0.99))),
			"         "+bars(v.longest)+"  p99, each column an interval")
	}
	hits, misses := v.rate("varve_cache_hits_total"), v.rate("varve_cache_misses_total")
	list = append(list,
		"store    log "+b("varve_wal_bytes")+"   database "+b("varve_database_bytes")+"   backlog "+n("varve_compaction_backlog_changes")+" changes",
		"process  memory "+b("process_resident_memory_bytes")+fmt.Sprintf("   cpu %.0f %%", 100*v.rate("process_cpu_seconds_total"))+"   files "+n("process_open_fds"),
		"now      reading and writing "+n("varve_requests_in_flight")+"   waiting for a block "+n("varve_queued_writes")+"   cache "+b("varve_cache_bytes")+fmt.Sprintf(", %s hits", percent(hits/(hits+misses))),
		"", fmt.Sprintf("%-24s %10s %10s %10s", "operation", "a second", "p50", "p99"))
	for _, t := range between(v.before, v.now, "varve_request_seconds") {
		if t.count > 0 {
			list = append(list, fmt.Sprintf("%-24s %10s %10s %10s", t.label, count(t.count/v.seconds()), seconds(t.quantile(0.5)), seconds(t.quantile(0.99))))
		}
	}
	return list
}

func count(v float64) string {
	switch {
	case math.IsNaN(v):
		return "-"
	case v > 0 && v < 10 && v != math.Trunc(v):
		return fmt.Sprintf("%.1f", v)
	}
	return humanize.Comma(int64(math.Round(v)))
}

func bytes(v float64) string {
	if math.IsNaN(v) {
		return "-"
	}
	return humanize.Bytes(uint64(v))
}

// seconds are those of the end of a bucket.
func seconds(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "-"
	}
	return humanize.SIWithDigits(v, 1, "s")
}

func percent(v float64) string {
	if math.IsNaN(v) {
		return "no"
	}
	return fmt.Sprintf("%.0f %%", 100*v)
}

// bars draws numbers as heights relative to the largest; what is not a number is blank.
func bars(values []float64) string {
	const levels = "▁▂▃▄▅▆▇█"
	largest := 0.0
	for _, v := range values {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			largest = max(largest, v)
		}
	}
	var text strings.Builder
	for _, v := range values {
		switch {
		case math.IsNaN(v) || largest == 0:
			text.WriteByte(' ')
		default:
			text.WriteRune([]rune(levels)[min(7, int(7*v/largest))])
		}
	}
	return text.String()
}

// Print writes a block of lines every interval, until ctx is done or, unless it is zero,
// so many times.
func Print(ctx context.Context, out io.Writer, from Source, every time.Duration, times int) error {
	v := view{source: from}
	for n := 0; ; {
		s, err := from.read(ctx)
		if err != nil {
			return err
		}
		if v.next(s); v.before != nil {
			if _, err := fmt.Fprintln(out, strings.Join(v.lines(), "\n")+"\n"); err != nil {
				return err
			}
			if n++; n == times {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(every):
		}
	}
}

// Show draws on a screen until ctx is done, or q, Escape or Ctrl-C is pressed. What
// cannot be read is said on the screen, and tried again.
func Show(ctx context.Context, screen tcell.Screen, from Source, every time.Duration) error {
	if err := screen.Init(); err != nil {
		return err
	}
	defer screen.Fini()
	keys, quit := make(chan tcell.Event), make(chan struct{})
	defer close(quit)
	go screen.ChannelEvents(keys, quit)
	v := view{source: from}
	tick := time.NewTimer(0)
	defer tick.Stop()
	for lines := []string(nil); ; draw(screen, lines) {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			s, err := from.read(ctx)
			if err != nil {
				lines = append(lines[:min(len(lines), 1)], "", err.Error(), "tried again every "+every.String()+"; q ends")
			} else {
				v.next(s)
				lines = v.lines()
			}
			tick.Reset(every)
		case event := <-keys:
			switch e := event.(type) {
			case nil:
				return nil // the terminal is gone
			case *tcell.EventKey:
				if e.Rune() == 'q' || e.Key() == tcell.KeyEscape || e.Key() == tcell.KeyCtrlC {
					return nil
				}
			case *tcell.EventResize:
				screen.Sync()
			}
		}
	}
}

func draw(screen tcell.Screen, lines []string) {
	screen.Clear()
	for y, line := range lines {
		x := 0
		for _, r := range line {
			screen.SetContent(x, y, r, nil, tcell.StyleDefault.Bold(y == 0))
			x++
		}
	}
	screen.Show()
}
