package report_test

import (
	"bytes"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/browsertest"
	"github.com/varvedb/varve/internal/report"
	"github.com/varvedb/varve/internal/report/reporttest"
)

// browser looks at a report.
type browser struct{ *browsertest.Browser }

func open(t *testing.T) *browser {
	t.Helper()
	return &browser{browsertest.Open(t, "file://")}
}

// height is that of a large window; small ones scroll more.
const height = 1400

// open shows the page in a window of a width and waits until all is drawn.
func (b *browser) open(t *testing.T, path string, width int64) {
	t.Helper()
	b.Do(t,
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
)

func TestBrowser(t *testing.T) {
	b := open(t)
	path := writePage(t, reporttest.Options{Layouts: []string{"arkiv", "simple"}, Repeats: 2, Seconds: 20, Pairs: true})
	for _, width := range []int64{1280, 390} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			b.open(t, path, width)
			require.Greater(t, browsertest.Eval[int](t, b.Browser, `document.querySelectorAll(".chart").length`), 40)
			require.Empty(t, browsertest.Eval[[]string](t, b.Browser, emptyCharts), "nothing drawn")
			require.Empty(t, browsertest.Eval[[]string](t, b.Browser, browsertest.Overflow), "wider than the window")
			b.opening(t)
			b.followLinks(t)
			b.scrollSideways(t, width)
			b.useFilters(t)
			b.choose(t)
			require.Empty(t, browsertest.Eval[[]string](t, b.Browser, emptyCharts), "nothing drawn after clicking around")
			require.Empty(t, browsertest.Eval[[]string](t, b.Browser, browsertest.Overflow), "wider than the window after clicking around")
			b.RequireQuiet(t)
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
	tops := browsertest.Eval[[]float64](t, b.Browser, order)
	require.IsIncreasing(t, tops)
	require.Less(t, tops[3], float64(height), "the ranking begins below the first window")
	require.Contains(t, browsertest.Eval[string](t, b.Browser, `document.querySelector("#sentence").textContent`), "at revision 0123456")
	require.Contains(t, browsertest.Eval[string](t, b.Browser, `document.querySelector(".facts").textContent`), "Example CPU, 2 cores")
	require.Contains(t, browsertest.Eval[string](t, b.Browser, `document.querySelector(".facts").textContent`), "scale 0.05 (40,000 entities)")
	rows := browsertest.Eval[[]string](t, b.Browser, `[...document.querySelectorAll(".ranked tbody tr")].map(r => r.children[1].textContent + " " + r.children[0].textContent)`)
	require.Len(t, rows, 2*len(reporttest.Engines), "an engine and a layout each")
	require.Equal(t, "1 sqlite simple", rows[0])
	require.Contains(t, browsertest.Eval[string](t, b.Browser, `document.querySelector("#ranking").textContent`), "Noise floor, from measuring the same twice")
	require.Empty(t, browsertest.Eval[[]string](t, b.Browser, `[...document.querySelectorAll("dl.terms dt")].map(e => e.textContent).filter((w, i, all) => all.indexOf(w) !== i)`),
		"explained twice")
	require.True(t, browsertest.Eval[bool](t, b.Browser, `[...document.querySelectorAll("td a")].every(a => document.querySelector(a.getAttribute("href")))`), "a link leads nowhere")
	link := browsertest.Eval[string](t, b.Browser, `document.querySelector("article:not(#v1) td.fail a").getAttribute("href")`)
	require.Contains(t, browsertest.Eval[string](t, b.Browser, fmt.Sprintf(`document.querySelector(%q).parentElement.textContent`, link)), reporttest.Crash)
	require.Equal(t, "failed", browsertest.Eval[string](t, b.Browser, `document.querySelector("article#d5 td.fail a").parentElement.textContent`))
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
	tables := browsertest.Eval[[]bool](t, b.Browser, stays)
	require.NotContains(t, tables, false)
	if width < 400 {
		require.Greater(t, len(tables), 20, "tables that scroll")
	}
}

// followLinks clicks every link of the page and looks whether it has led there.
func (b *browser) followLinks(t *testing.T) {
	t.Helper()
	links := browsertest.Eval[[]string](t, b.Browser, `[...document.querySelectorAll("nav a")].map(a => a.getAttribute("href"))`)
	require.Greater(t, len(links), 20)
	for _, link := range links {
		at := browsertest.Eval[string](t, b.Browser, fmt.Sprintf(`document.querySelector('nav a[href="%s"]').click(), location.hash`, link))
		require.Equal(t, link, at)
		top := browsertest.Eval[float64](t, b.Browser, fmt.Sprintf(`(() => { const r = document.querySelector(%q).getBoundingClientRect();
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

		before := browsertest.Eval[int](t, b.Browser, shown)
		require.Greater(t, before, 20)
		b.Until(t, inChart)
		b.Do(t, chromedp.Click(chromedp.CSS(button)))
		require.Zero(t, browsertest.Eval[int](t, b.Browser, shown), "%s is still shown", engine)
		require.Equal(t, "false", browsertest.Eval[string](t, b.Browser, pressed))
		b.Until(t, "!"+inChart)

		b.Do(t, chromedp.Click(chromedp.CSS(button)))
		require.Equal(t, before, browsertest.Eval[int](t, b.Browser, shown), "%s is not shown again", engine)
		require.Equal(t, "true", browsertest.Eval[string](t, b.Browser, pressed))
		b.Until(t, inChart)
	}
}

// print looks at the paper: the sentence, the machine, the ranking and the verdict,
// unless all was asked for.
func (b *browser) print(t *testing.T) {
	t.Helper()
	_, err := chromedp.Call(b.Context(), emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print"})
	require.NoError(t, err)
	const shown = `[...document.querySelectorAll("section, .bar")].filter(e => e.getClientRects().length).map(e => e.id)`
	require.Equal(t, []string{"ranking", "verdict"}, browsertest.Eval[[]string](t, b.Browser, shown))
	require.True(t, browsertest.Eval[bool](t, b.Browser, `[...document.querySelectorAll("#sentence, .facts, .ranked, #v1 table")].every(e => e.getClientRects().length)`))
	require.Empty(t, browsertest.Eval[[]string](t, b.Browser, browsertest.Overflow))
	browsertest.Eval[bool](t, b.Browser, `document.documentElement.classList.add("all") || true`)
	require.Greater(t, len(browsertest.Eval[[]string](t, b.Browser, shown)), 6)
}

// choose takes the last variant of every chart that has several.
func (b *browser) choose(t *testing.T) {
	t.Helper()
	changed := browsertest.Eval[[]bool](t, b.Browser, `[...document.querySelectorAll("select[data-chart]")].map(s => {
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
	b := open(t)
	path := os.Getenv("VARVE_PAGE")
	if path == "" {
		path = writePage(t, reporttest.Options{Repeats: 4, Pairs: true})
	}
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{1280, 390} {
			_, err := chromedp.Call(b.Context(), emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
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
	for i, id := range browsertest.Eval[[]string](t, b.Browser, `[...document.querySelectorAll("section, article")].map(e => e.id).filter(id => id)`) {
		browsertest.Eval[float64](t, b.Browser, fmt.Sprintf(`document.getElementById(%q).scrollIntoView(), window.scrollY`, id))
		b.keep(t, fmt.Sprintf("%s-%02d-%s.png", name, i, id), chromedp.CaptureScreenshot())
	}
}

func (b *browser) keep(t *testing.T, path string, action chromedp.Action[[]byte]) {
	t.Helper()
	picture, err := chromedp.Run(b.Context(), action)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, picture, 0o644))
}
