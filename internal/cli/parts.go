package cli

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// parts reports which part of a long measurement is running, with the estimated
// time left. On a terminal this is one line, rewritten every second, with the
// last message of the measuring process; elsewhere a line is printed when each
// part begins. It collects that process's messages, which are printed only with
// all.
type parts struct {
	e       *env
	verbose bool            // print every message
	columns int             // of the terminal; 0: not a terminal
	guesses []time.Duration // estimated duration of each part; 0 is unknown

	mu           sync.Mutex // guards the fields below
	start, begun time.Time  // when the first part and the running part began
	finished     int        // number of finished parts
	text         string     // description of the running part; "" between two
	message      string
	timer        *time.Timer // timer that rewrites the line
}

func newParts(e *env, guesses []time.Duration, all bool) *parts {
	p := &parts{e: e, verbose: all, guesses: guesses, start: time.Now()}
	if !all {
		p.columns = columns(e.stderr)
	}
	return p
}

// begin reports that the next part runs.
func (p *parts) begin(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begun, p.text, p.message = time.Now(), text, ""
	if p.columns == 0 {
		fmt.Fprintln(p.e.stderr, p.line(p.begun))
		return
	}
	p.timer = time.AfterFunc(0, p.rewrite)
}

// rewrite updates the line, and again every second.
func (p *parts) rewrite() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.text != "" {
		fmt.Fprint(p.e.stderr, erase+cut(p.line(time.Now())+p.message, p.columns-1))
		p.timer.Reset(time.Second)
	}
}

// line formats the running part.
func (p *parts) line(now time.Time) string {
	text := fmt.Sprintf("part %d of %d", p.finished+1, len(p.guesses))
	if left := p.remaining(now); left > 0 {
		text += fmt.Sprintf(" (about %s left)", formatEstimate(left))
	}
	return text + ": " + p.text
}

// remaining estimates the remaining time; 0 if unknown. It corrects the estimates by
// the actual times of the finished parts.
func (p *parts) remaining(now time.Time) time.Duration {
	ended, rest := 0.0, 0.0
	for i, guess := range p.guesses {
		if i < p.finished {
			ended += max(guess.Seconds(), 1)
		} else {
			rest += max(guess.Seconds(), 1)
		}
	}
	factor := 1.0
	switch {
	case ended > 0:
		factor = p.begun.Sub(p.start).Seconds() / ended
	case p.guesses[p.finished] == 0:
		return 0
	}
	left := time.Duration(factor*rest*float64(time.Second)) - now.Sub(p.begun)
	if deadline, has := p.e.ctx.Deadline(); has {
		left = min(left, deadline.Sub(now))
	}
	return left
}

// end reports that the part has ended.
func (p *parts) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.finished++
	p.text = ""
	if p.columns > 0 {
		p.timer.Stop()
		fmt.Fprint(p.e.stderr, erase)
	}
}

// Write collects messages of the measuring process.
func (p *parts) Write(message []byte) (int, error) {
	if p.verbose {
		return p.e.stderr.Write(message)
	}
	lines := strings.Split(strings.TrimSpace(string(message)), "\n")
	p.mu.Lock()
	defer p.mu.Unlock()
	p.message = "; " + lines[len(lines)-1]
	return len(message), nil
}

var _ io.Writer = (*parts)(nil)

// formatEstimate formats an estimated time.
func formatEstimate(d time.Duration) string {
	if d < time.Minute {
		return d.Round(time.Second).String()
	}
	return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
}

// cut shortens a text to a number of columns.
func cut(text string, columns int) string {
	if runes := []rune(text); len(runes) > columns {
		return string(runes[:max(columns, 0)])
	}
	return text
}
