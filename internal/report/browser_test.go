package report_test

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/report"
	"github.com/varvedb/varve/internal/report/reporttest"
)

// browser opens a page in headless Chromium and keeps what it complains about.
type browser struct {
	ctx context.Context

	mu         sync.Mutex
	complaints []string
}

func openBrowser(t *testing.T) *browser {
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
	allocator, stop := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(stop)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, 2*time.Minute)
	t.Cleanup(cancel)
	b := &browser{ctx: ctx}
	require.NoError(t, chromedp.Listen(ctx, b.listen))
	_, err := chromedp.Call(ctx, network.Enable, network.EnableParams{})
	require.NoError(t, err)
	return b
}

// listen keeps errors, warnings, and requests for anything but the page.
func (b *browser) listen(event any) {
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
		if !strings.HasPrefix(e.Request.URL, "file://") && !strings.HasPrefix(e.Request.URL, "data:") {
			complain("request: %s", e.Request.URL)
		}
	}
}

func (b *browser) requireQuiet(t *testing.T) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	require.Empty(t, b.complaints)
}

func (b *browser) do(t *testing.T, actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	require.NoError(t, chromedp.Do(b.ctx, actions...))
}

// eval evaluates an expression.
func eval[T any](t *testing.T, b *browser, expression string) T {
	t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	require.NoError(t, err, expression)
	return v
}

// height is that of a large window; small ones scroll more.
const height = 1400

// open shows the page in a window of a width and waits until all is drawn.
func (b *browser) open(t *testing.T, path string, width int64) {
	t.Helper()
	b.do(t,
		chromedp.EmulateViewport(width, height),
		chromedp.Navigate((&url.URL{Scheme: "file", Path: path}).String()),
		chromedp.WaitReady(chromedp.CSS(`html[data-drawn="true"]`)),
	)
}

func writePage(t *testing.T, o reporttest.Options) string {
	t.Helper()
	var text bytes.Buffer
	require.NoError(t, report.WriteHTML(&text, full(t, o)))
	path := filepath.Join(t.TempDir(), "report.html")
	require.NoError(t, os.WriteFile(path, text.Bytes(), 0o644))
	return path
}

const (
	// Charts that take no room, or in which nothing is drawn.
	emptyCharts = `[...document.querySelectorAll(".chart")].filter(c => !c.closest("[hidden]")).filter(c => {
		const svg = c.querySelector("svg"), r = svg && svg.getBoundingClientRect();
		return !svg || r.width < 100 || r.height < 100 || svg.querySelectorAll("path").length < 3;
	}).map(c => c.dataset.chart)`
	// What is wider than the window, unless it scrolls by itself.
	overflow = `document.documentElement.scrollWidth > window.innerWidth ? [...document.querySelectorAll("body *")].filter(e =>
		e.getBoundingClientRect().right > window.innerWidth + 1 && !e.closest(".scroll, .bar, pre, .chart")).map(e => e.tagName + " " + e.className).slice(0, 5)
		.concat("page is " + document.documentElement.scrollWidth + " wide") : []`
)

func TestBrowser(t *testing.T) {
	b := openBrowser(t)
	path := writePage(t, reporttest.Options{Layouts: []string{"arkiv", "simple"}, Repeats: 2, Seconds: 20, Pairs: true})
	for _, width := range []int64{1280, 390} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			b.open(t, path, width)
			require.Greater(t, eval[int](t, b, `document.querySelectorAll(".chart").length`), 40)
			require.Empty(t, eval[[]string](t, b, emptyCharts), "nothing drawn")
			require.Empty(t, eval[[]string](t, b, overflow), "wider than the window")
			b.opening(t)
			b.followLinks(t)
			b.scrollSideways(t, width)
			b.useFilters(t)
			b.choose(t)
			require.Empty(t, eval[[]string](t, b, emptyCharts), "nothing drawn after clicking around")
			require.Empty(t, eval[[]string](t, b, overflow), "wider than the window after clicking around")
			b.requireQuiet(t)
		})
	}
	t.Run("print", func(t *testing.T) {
		b.open(t, path, 800)
		b.print(t)
	})
}

// opening looks for what has to be known first, in its order and within the first
// two windows.
func (b *browser) opening(t *testing.T) {
	t.Helper()
	const order = `["h1", "#sentence", ".facts", ".ranked", "#verdict"].map(s => document.querySelector(s).getBoundingClientRect().top + window.scrollY)`
	tops := eval[[]float64](t, b, order)
	require.IsIncreasing(t, tops)
	require.Less(t, tops[3], float64(height), "the ranking begins below the first window")
	require.Contains(t, eval[string](t, b, `document.querySelector("#sentence").textContent`), "at revision 0123456")
	require.Contains(t, eval[string](t, b, `document.querySelector(".facts").textContent`), "Example CPU, 2 cores")
	require.Contains(t, eval[string](t, b, `document.querySelector(".facts").textContent`), "scale 0.05 (40,000 entities)")
	rows := eval[[]string](t, b, `[...document.querySelectorAll(".ranked tbody tr")].map(r => r.children[1].textContent + " " + r.children[0].textContent)`)
	require.Len(t, rows, 2*len(reporttest.Engines), "an engine and a layout each")
	require.Equal(t, "1 sqlite simple", rows[0])
	require.Contains(t, eval[string](t, b, `document.querySelector("#ranking").textContent`), "Noise floor, from measuring the same twice")
	require.Empty(t, eval[[]string](t, b, `[...document.querySelectorAll("dl.terms dt")].map(e => e.textContent).filter((w, i, all) => all.indexOf(w) !== i)`),
		"explained twice")
	require.True(t, eval[bool](t, b, `[...document.querySelectorAll("td a")].every(a => document.querySelector(a.getAttribute("href")))`), "a link leads nowhere")
	link := eval[string](t, b, `document.querySelector("article:not(#v1) td.fail a").getAttribute("href")`)
	require.Contains(t, eval[string](t, b, fmt.Sprintf(`document.querySelector(%q).parentElement.textContent`, link)), reporttest.Crash)
	require.Equal(t, "failed", eval[string](t, b, `document.querySelector("article#d5 td.fail a").parentElement.textContent`))
}

// scrollSideways scrolls every table that is wider than its place to its end: the
// first column stays where it is.
func (b *browser) scrollSideways(t *testing.T, width int64) {
	t.Helper()
	const stays = `[...document.querySelectorAll(".scroll")].filter(s => s.clientWidth && s.scrollWidth > s.clientWidth + 1).map(s => {
		const first = s.querySelector("tbody th"), before = first.getBoundingClientRect().left;
		s.scrollLeft = s.scrollWidth;
		const moved = s.querySelector("tbody tr").lastElementChild.getBoundingClientRect().right - s.getBoundingClientRect().right;
		const after = first.getBoundingClientRect().left;
		s.scrollLeft = 0;
		return Math.abs(after - before) <= 1 && Math.abs(moved) <= 1;
	})`
	tables := eval[[]bool](t, b, stays)
	require.NotContains(t, tables, false)
	if width < 400 {
		require.Greater(t, len(tables), 20, "tables that scroll")
	}
}

// followLinks clicks every link of the page and looks whether it has led there.
func (b *browser) followLinks(t *testing.T) {
	t.Helper()
	links := eval[[]string](t, b, `[...document.querySelectorAll("nav a")].map(a => a.getAttribute("href"))`)
	require.Greater(t, len(links), 20)
	for _, link := range links {
		at := eval[string](t, b, fmt.Sprintf(`document.querySelector('nav a[href="%s"]').click(), location.hash`, link))
		require.Equal(t, link, at)
		top := eval[float64](t, b, fmt.Sprintf(`(() => { const r = document.querySelector(%q).getBoundingClientRect();
			const end = window.scrollY + window.innerHeight > document.documentElement.scrollHeight - 2;
			return end && r.top < window.innerHeight ? 0 : r.top })()`, link))
		require.InDelta(t, 60, top, 70, "the page did not go to %s", link)
	}
}

// useFilters hides each engine alone, and shows it again: what is its own in the
// page, and its series in a chart.
func (b *browser) useFilters(t *testing.T) {
	t.Helper()
	const chart = `document.querySelector('.chart[data-chart="chart-a5-ent-s"]')`
	for _, engine := range reporttest.Engines {
		shown := fmt.Sprintf(`[...document.querySelectorAll('[data-engine="%s"]')].filter(e => e.offsetParent !== null).length`, engine)
		button := fmt.Sprintf(`[data-filter="%s"]`, engine)
		pressed := fmt.Sprintf(`document.querySelector('%s').getAttribute("aria-pressed")`, button)
		inChart := fmt.Sprintf(`(%s.scrollIntoView(), [...%s.querySelectorAll("*")].some(e => !e.children.length && e.textContent.split(/\W/).includes(%q)))`, chart, chart, engine)

		before := eval[int](t, b, shown)
		require.Greater(t, before, 20)
		b.until(t, inChart)
		b.do(t, chromedp.Click(chromedp.CSS(button)))
		require.Zero(t, eval[int](t, b, shown), "%s is still shown", engine)
		require.Equal(t, "false", eval[string](t, b, pressed))
		b.until(t, "!"+inChart)

		b.do(t, chromedp.Click(chromedp.CSS(button)))
		require.Equal(t, before, eval[int](t, b, shown), "%s is not shown again", engine)
		require.Equal(t, "true", eval[string](t, b, pressed))
		b.until(t, inChart)
	}
}

// until waits for an expression to be true: charts are drawn when they come into
// view.
func (b *browser) until(t *testing.T, expression string) {
	t.Helper()
	_, err := chromedp.Run(b.ctx, chromedp.Poll[bool](expression, chromedp.WithPollingTimeout(10*time.Second)))
	require.NoError(t, err, expression)
}

// print looks at the paper: the sentence, the machine, the ranking and the verdict,
// unless all was asked for.
func (b *browser) print(t *testing.T) {
	t.Helper()
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print"})
	require.NoError(t, err)
	const shown = `[...document.querySelectorAll("section, .bar")].filter(e => e.getClientRects().length).map(e => e.id)`
	require.Equal(t, []string{"ranking", "verdict"}, eval[[]string](t, b, shown))
	require.True(t, eval[bool](t, b, `[...document.querySelectorAll("#sentence, .facts, .ranked, #v1 table")].every(e => e.getClientRects().length)`))
	require.Empty(t, eval[[]string](t, b, overflow))
	eval[bool](t, b, `document.documentElement.classList.add("all") || true`)
	require.Greater(t, len(eval[[]string](t, b, shown)), 6)
}

// choose takes the last variant of every chart that has several.
func (b *browser) choose(t *testing.T) {
	t.Helper()
	changed := eval[[]bool](t, b, `[...document.querySelectorAll("select[data-chart]")].map(s => {
		const chart = document.querySelector('.chart[data-chart="' + s.dataset.chart + '"]'), before = chart.innerHTML;
		s.value = String(s.options.length - 1);
		s.dispatchEvent(new Event("change"));
		return chart.innerHTML !== before;
	})`)
	require.Greater(t, len(changed), 10)
	require.NotContains(t, changed, false)
}

// TestPictures takes pictures for those who want to look, when told where to: of
// the page that VARVE_PAGE names, or of a synthetic one.
func TestPictures(t *testing.T) {
	dir := os.Getenv("VARVE_PICTURES")
	if dir == "" {
		t.Skip("VARVE_PICTURES names no directory for pictures")
	}
	b := openBrowser(t)
	path := os.Getenv("VARVE_PAGE")
	if path == "" {
		path = writePage(t, reporttest.Options{Repeats: 4, Pairs: true})
	}
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{1280, 390} {
			_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
			})
			require.NoError(t, err)
			b.open(t, path, width)
			b.scroll(t, filepath.Join(dir, fmt.Sprintf("%s-%d", scheme, width)))
		}
	}
	b.keep(t, filepath.Join(dir, "print.pdf"), chromedp.PrintToPDF(chromedp.PDFPaper(chromedp.PaperA4)))
}

// scroll takes a picture of every windowful of the beginning of each section.
func (b *browser) scroll(t *testing.T, name string) {
	t.Helper()
	for i, id := range eval[[]string](t, b, `[...document.querySelectorAll("section, article")].map(e => e.id).filter(id => id)`) {
		eval[float64](t, b, fmt.Sprintf(`document.getElementById(%q).scrollIntoView(), window.scrollY`, id))
		b.keep(t, fmt.Sprintf("%s-%02d-%s.png", name, i, id), chromedp.CaptureScreenshot())
	}
}

func (b *browser) keep(t *testing.T, path string, action chromedp.Action[[]byte]) {
	t.Helper()
	picture, err := chromedp.Run(b.ctx, action)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, picture, 0o644))
}
