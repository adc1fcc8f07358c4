// Package browsertest opens pages in a browser.
package browsertest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// Browser opens pages in headless Chromium and collects their errors.
type Browser struct {
	ctx   context.Context
	pages string // prefix of all URLs that may be loaded

	mu         sync.Mutex
	complaints []string
}

// Open starts a browser whose pages may load only URLs with a given prefix.
// Without Chromium the test is skipped.
func Open(t *testing.T, pages string) *Browser {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Skip("no Chromium on this machine")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium refuses its sandbox to root
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 2*time.Minute)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	ctx, _ = chromedp.NewContext(ctx)
	t.Cleanup(func() { _ = chromedp.Cancel(ctx) }) // a killed browser leaves files
	b := &Browser{ctx: ctx, pages: pages}
	require.NoError(t, chromedp.Listen(ctx, b.listen))
	_, err := chromedp.Call(ctx, network.Enable, network.EnableParams{})
	require.NoError(t, err)
	return b
}

// listen collects errors, warnings, and requests for anything but the page.
func (b *Browser) listen(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	complain := func(format string, args ...any) { b.complaints = append(b.complaints, fmt.Sprintf(format, args...)) }
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		complain("exception: %s %v", e.ExceptionDetails.Text, e.ExceptionDetails.Exception)
	case *runtime.EventConsoleAPICalled:
		if e.Type != "log" && e.Type != "info" && e.Type != "debug" {
			for _, arg := range e.Args {
				complain("console: %s %s", e.Type, arg.Value)
			}
		}
	case *log.EventEntryAdded:
		complain("log: %s %s", e.Entry.Level, e.Entry.Text)
	case *network.EventRequestWillBeSent:
		if !strings.HasPrefix(e.Request.URL, b.pages) && !strings.HasPrefix(e.Request.URL, "data:") {
			complain("request: %s", e.Request.URL)
		}
	}
}

// Context is that of the browser.
func (b *Browser) Context() context.Context { return b.ctx }

// RequireQuiet fails if there were any.
func (b *Browser) RequireQuiet(t *testing.T) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	require.Empty(t, b.complaints)
}

// Do runs browser actions.
func (b *Browser) Do(t *testing.T, actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	require.NoError(t, chromedp.Do(b.ctx, actions...))
}

// Eval evaluates an expression.
func Eval[T any](t *testing.T, b *Browser, expression string) T {
	t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	require.NoError(t, err, expression)
	return v
}

// Until waits until an expression is true, because charts are drawn only when
// they come into view.
func (b *Browser) Until(t *testing.T, expression string) {
	t.Helper()
	_, err := chromedp.Run(b.ctx, chromedp.Poll[bool](expression, chromedp.WithPollingTimeout(10*time.Second)))
	require.NoError(t, err, expression)
}

// Overlap is an expression for the labels of pictures that overlap or are cut
// off.
const Overlap = `[...document.querySelectorAll("svg")].flatMap(svg => {
		const all = svg.getBoundingClientRect(), texts = [...svg.querySelectorAll("text")].map(t => [t.textContent, t.getBoundingClientRect()])
		return texts.filter(([, a], i) => a.left < all.left - 1 || a.right > all.right + 1 || a.top < all.top - 1 || a.bottom > all.bottom + 1 ||
			texts.some(([, b], j) => j < i && a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 2 && b.top < a.bottom - 2)).map(([text]) => text)
	})`

// Overflow is an expression for the elements that are wider than the window and
// do not scroll.
const Overflow = `document.documentElement.scrollWidth > window.innerWidth ? [...document.querySelectorAll("body *")].filter(e =>
		e.getBoundingClientRect().right > window.innerWidth + 1 && !e.closest(".scroll, .bar, pre, .chart")).map(e => e.tagName + " " + e.className).slice(0, 5)
		.concat("page is " + document.documentElement.scrollWidth + " wide") : []`
