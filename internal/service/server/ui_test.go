package server_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/browsertest"
	"github.com/varvedb/varve/internal/service"
	"github.com/varvedb/varve/internal/service/server"
)

// TestUI: the page finds entities, shows one over blocks and the store at a
// past block, draws the metrics, and shows errors; in a wide window and in a
// narrow one.
func TestUI(t *testing.T) {
	t.Parallel()
	const token = "a token for the tests"
	w := run(t, service.Options{}, server.Options{GRPC: "off", Token: token, UI: true})
	at := "http://" + w.server.REST()
	put := func(key byte, text, query string) {
		path := fmt.Sprintf("%s/v1/entities/0x%064x/payload?%s", at, key, query)
		req, err := http.NewRequest(http.MethodPut, path, strings.NewReader(text))
		require.NoError(t, err)
		req.Header.Set("Content-Type", "text/plain")
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := w.client.Do(req)
		require.NoError(t, err)
		defer resp.Body.Close()
		require.Less(t, resp.StatusCode, 300)
	}
	for i := range 60 {
		put(byte(i+1), "hello", fmt.Sprintf("s.type=node&s.name=<b>%d</b>&n.cpu=%d", i, i%16))
	}
	put(60, "hello again", "s.type=node&n.cpu=99")
	put(60, "and again", "s.type=gone&n.cpu=100")

	b := browsertest.Open(t, at)
	for _, width := range []int64{1280, 390} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			b.Do(t, chromedp.EmulateViewport(width, 1000), chromedp.Navigate(at+"/"))
			require.Equal(t, "/ui", browsertest.Eval[string](t, b, "location.pathname"))
			text := func(selector string) string {
				return browsertest.Eval[string](t, b, `document.querySelector("`+selector+`").textContent`)
			}
			fill := func(form, field, value string) {
				browsertest.Eval[bool](t, b, fmt.Sprintf(`(f => { f[%q].value = %q; f.requestSubmit(); return true })(document.querySelector(%q))`, field, value, form))
			}
			if width == 1280 {
				b.Until(t, `!document.querySelector("#access").hidden && document.querySelector("#problems").textContent.includes("TOKEN")`)
				fill("#access", "token", token)
				b.Until(t, `document.querySelector("#problems").textContent === ""`)
			}
			b.Until(t, `document.querySelectorAll("#entities tbody tr").length === 50`)
			require.Contains(t, text("#found"), "and more")
			browsertest.Eval[bool](t, b, `(document.querySelector("#more").click(), true)`)
			b.Until(t, `document.querySelectorAll("#entities tbody tr").length === 60`)

			fill("#search", "query", `type = "gone"`)
			b.Until(t, `document.querySelectorAll("#entities tbody tr").length === 1`)
			browsertest.Eval[bool](t, b, `(document.querySelector("#entities a").click(), true)`)
			b.Until(t, `document.querySelectorAll("#history tbody tr").length === 3`)
			require.Contains(t, text("#history"), "hello again")
			require.Contains(t, text("#history"), `<b>59</b>`, "text is text")
			require.Equal(t, "and again", text("#payload"))
			require.Equal(t, "text/plain, 9 bytes", text("#kind"))
			require.True(t, browsertest.Eval[bool](t, b, `detail.previousElementSibling.dataset.key === opened && detail.getBoundingClientRect().top < innerHeight`), "it is in view")
			picture(t, b, fmt.Sprintf("ui-entity-%d", width))
			b.Until(t, `/engine sqlite.*layout compact.*entities 60/.test(document.querySelector("#facts").textContent)`)
			b.Until(t, `/block \d+blocks\/s /.test(document.querySelector("#facts").textContent)`)

			b.Until(t, fmt.Sprintf(`document.querySelectorAll("#blocks button").length === %d`, map[int64]int{1280: 60, 390: 30}[width]))
			fill("#search", "block", "61")
			b.Until(t, `document.querySelector("#found").textContent.includes("at block 61")`)
			require.True(t, strings.HasPrefix(text("#found"), "0 "), "it was not gone then")
			fill("#search", "query", `type = `)
			b.Until(t, `document.querySelector("#problems").textContent !== ""`)
			looks := func(n int) {
				b.Until(t, fmt.Sprintf("points.length >= %d", browsertest.Eval[int](t, b, "points.length")+n))
			}
			looks(2)
			require.Contains(t, text("#problems"), "expected", "an error stays")
			browsertest.Eval[bool](t, b, `(document.querySelector("#problems button").click(), true)`)
			require.Empty(t, text("#problems"), "until it is dismissed")
			require.Empty(t, browsertest.Eval[[]string](t, b, browsertest.Overflow))

			browsertest.Eval[bool](t, b, `(search.block.value = "", true)`)
			fill("#search", "query", `type = "node"`)
			b.Until(t, `document.querySelectorAll("#entities tbody tr").length === 50`)
			put(59, "hello", "s.type=node&n.cpu=77")
			b.Until(t, `document.querySelectorAll("#entities tr.old").length === 1 && !!document.querySelector("#entities tr.old").title`)
			require.Contains(t, text("#stale"), "dimmed: 1 changed")
			require.Equal(t, 3, browsertest.Eval[int](t, b, `[...document.querySelectorAll(".chart svg")].filter(s => s.querySelectorAll("text").length === 6 && s.querySelector(".one").getAttribute("d")).length`))
			require.Less(t, browsertest.Eval[float64](t, b, `document.querySelector("#head").getBoundingClientRect().bottom`), browsertest.Eval[float64](t, b, `document.querySelector("#entities").getBoundingClientRect().top`))
			require.Empty(t, browsertest.Eval[[]string](t, b, browsertest.Overlap))
			picture(t, b, fmt.Sprintf("ui-%d", width))

			// On request the list follows the head, and keeps an entity open.
			browsertest.Eval[bool](t, b, `(document.querySelector("#entities a").click(), true)`)
			b.Until(t, `document.querySelectorAll("#history tbody tr").length > 0`)
			browsertest.Eval[bool](t, b, `(search.follow.click(), true)`)
			b.Until(t, `document.querySelectorAll("#entities tr.old:not(#history tr)").length === 0`)
			put(58, "followed", "s.type=node&n.cpu="+strconv.FormatInt(width, 10))
			b.Until(t, fmt.Sprintf(`document.querySelector("#entities").textContent.includes("cpu = %d") && document.querySelectorAll("#entities tr.old:not(#history tr)").length === 0`, width))
			require.True(t, browsertest.Eval[bool](t, b, `detail.isConnected`))
			require.Empty(t, browsertest.Eval[[]string](t, b, browsertest.Overflow))
			offline := func(is bool) {
				_, err := chromedp.Call(b.Context(), cdp.Command[map[string]any, cdp.Empty]{Method: "Network.emulateNetworkConditions"}, map[string]any{"offline": is, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1})
				require.NoError(t, err)
			}
			offline(true)
			b.Until(t, `document.querySelector("#now").className === "old"`)
			require.Contains(t, text("#problems"), "does not answer")
			offline(false)
			b.Until(t, `document.querySelector("#now").className === "" && document.querySelector("#problems").textContent === ""`)
		})
	}
}

// picture keeps what the browser shows, for who wants to see it.
func picture(t *testing.T, b *browsertest.Browser, name string) {
	t.Helper()
	dir := os.Getenv("VARVE_PICTURES")
	if dir == "" {
		return
	}
	image, err := chromedp.Run(b.Context(), chromedp.FullScreenshot(100))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, name+".png"), image, 0o644))
}
