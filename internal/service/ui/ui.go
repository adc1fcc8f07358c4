// Package ui is a web page that shows a store through the REST interface of its
// service.
package ui

import (
	_ "embed" // the page
	"net/http"
)

//go:embed index.html
var page []byte

// Page serves the page, which uses only this service's interface.
func Page(w http.ResponseWriter, _ *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; connect-src 'self'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(page) // who does not take it is gone
}
