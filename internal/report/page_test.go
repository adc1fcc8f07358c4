package report_test

import (
	"bytes"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/browsertest"
	"github.com/varvedb/varve/internal/lab"
	"github.com/varvedb/varve/internal/report"
)

// The page of a whole campaign is under 20 screens, begins with the five questions, fits a window of
// 390 pixels, asks for nothing from outside, and shows its pictures.
func TestBrowser(t *testing.T) {
	b := browsertest.Open(t, "file://")
	set, err := published.set("campaign")
	require.NoError(t, err)
	page, err := report.NewPage(set, "Results <of> a campaign", lab.Sections())
	require.NoError(t, err)
	var text bytes.Buffer
	require.NoError(t, report.WriteHTML(&text, page))
	path := filepath.Join(t.TempDir(), "report.html")
	require.NoError(t, os.WriteFile(path, text.Bytes(), 0o600))

	const height = 800
	for _, width := range []int64{1280, 390} {
		b.Do(t, chromedp.EmulateViewport(width, height), chromedp.Navigate((&url.URL{Scheme: "file", Path: path}).String()))
		require.Less(t, browsertest.Eval[int](t, b, `document.documentElement.scrollHeight`), 20*height, width)
		require.Equal(t, "1. Most writes", browsertest.Eval[string](t, b, `document.querySelector("h2").firstChild.textContent.trim()`))
		require.True(t, browsertest.Eval[bool](t, b, `document.querySelector(".read li").getBoundingClientRect().bottom < innerHeight && document.querySelector("nav").offsetTop < document.querySelector(".read").offsetTop`), "how to read this is seen first")
		require.Empty(t, browsertest.Eval[[]string](t, b, `[...document.querySelectorAll("nav a, a.up")].map(a => a.getAttribute("href")).filter(at => !document.querySelector(at))`), "links lead somewhere")
		require.Empty(t, browsertest.Eval[[]string](t, b, browsertest.Overflow), "wider than the window")
		b.Do(t, chromedp.Evaluate[chromedp.Void](`document.querySelectorAll("details").forEach(d => d.open = true)`))
		require.Empty(t, browsertest.Eval[[]string](t, b, browsertest.Overflow), "wider than the window when all is open")
		require.Equal(t, 4, browsertest.Eval[int](t, b, `[...document.querySelectorAll(".pictures svg")].filter(s => s.getBoundingClientRect().height > 100).length`))
		require.Empty(t, browsertest.Eval[[]string](t, b, browsertest.Overlap), "labels on each other")
		// Of each setting the best stands first, and who is not chosen is not compared with.
		require.Contains(t, browsertest.Eval[string](t, b, `document.querySelector("header").textContent`), "Set campaign: ")
		firsts := func() []string {
			return browsertest.Eval[[]string](t, b, `[...document.querySelectorAll("#q1 table")][0].querySelectorAll("tbody tr:not([hidden]) td:last-child").values().toArray().map(c => c.textContent)`)
		}
		require.Equal(t, "best", firsts()[0])
		require.True(t, slices.ContainsFunc(firsts(), func(text string) bool { return strings.HasPrefix(text, "÷ ") }))
		before := len(firsts())
		browsertest.Eval[bool](t, b, `(document.querySelector("#filter [name=sqlite]").click(), true)`)
		require.Less(t, len(firsts()), before)
		require.Equal(t, "best", firsts()[0], "of the others")
		require.Empty(t, browsertest.Eval[[]string](t, b, `[...document.querySelectorAll("tbody tr:not([hidden]) th")].map(c => c.textContent).filter(c => c === "sqlite")`))
		browsertest.Eval[bool](t, b, `(document.querySelector("#filter [name=sqlite]").click(), true)`)
		require.Len(t, firsts(), before)
		require.Zero(t, browsertest.Eval[int](t, b, `[...document.querySelectorAll("table")].filter(t => !t.rows.length || !t.rows[0].cells.length).length`))
	}
	b.RequireQuiet(t)
}
