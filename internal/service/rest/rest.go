// Package rest serves a service over HTTP, as described in api/openapi.yaml.
package rest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/varvedb/varve/api"
	"github.com/varvedb/varve/internal/accesslog"
	"github.com/varvedb/varve/internal/service"
	"github.com/varvedb/varve/internal/service/ui"
)

// Handler is the REST interface of a service.
type Handler struct {
	service *service.Service
	with    service.Serving
	mux     *http.ServeMux
	maxBody int64 // bytes of a body: the largest payload in base 64, and 1 MiB for the rest
}

// route is a method and a path of the interface, with parameters in braces, and
// its handler.
type route struct {
	method, path string
	name         string // of the operation, in metrics
	kind         kind
	serve        func(h *Handler, w *answer, r *http.Request) error
}

// kind is what a request for a route needs: the token, a place, a time limit.
type kind int

const (
	usual   kind = iota // the token and a place; the usual time limit
	streams             // the token and a place; the time limit applies to each part
	follows             // the token and a place among the subscriptions
	watches             // only the token: it is answered even when there are no places
	public              // nothing
)

func routes() []route {
	return []route{
		{"PUT", "/v1/entities/{key}", "put", usual, (*Handler).put},
		{"GET", "/v1/entities/{key}", "get", usual, (*Handler).get},
		{"DELETE", "/v1/entities/{key}", "delete", usual, (*Handler).delete},
		{"PUT", "/v1/entities/{key}/payload", "put", usual, (*Handler).putPayload},
		{"GET", "/v1/entities/{key}/payload", "get", usual, (*Handler).getPayload},
		{"POST", "/v1/query", "query", streams, (*Handler).query},
		{"POST", "/v1/events", "append", usual, (*Handler).append},
		{"GET", "/v1/events", "read", streams, (*Handler).readEvents},
		{"GET", "/v1/events/head", "head", usual, (*Handler).head},
		{"GET", "/v1/events/checkpoints/{consumer}", "checkpoint", usual, (*Handler).checkpoint},
		{"POST", "/v1/events/checkpoints/{consumer}", "advance", usual, (*Handler).advance},
		{"POST", "/v1/events/read", "read", streams, (*Handler).readEvents},
		{"GET", "/v1/events/subscribe", "subscribe", follows, (*Handler).subscribe},
		{"POST", "/v1/events/subscribe", "subscribe", follows, (*Handler).subscribe},
		{"GET", "/metrics", "metrics", watches, (*Handler).metrics},
		{"GET", "/openapi.yaml", "openapi", public, (*Handler).openAPI},
		{"GET", "/healthz", "healthz", public, (*Handler).healthz},
		{"GET", "/readyz", "readyz", public, (*Handler).readyz},
	}
}

// New returns the REST interface of a service, with a page at /ui that shows
// the store, if wanted.
func New(s *service.Service, with service.Serving, page bool) *Handler {
	h := &Handler{service: s, with: with.WithDefaults(), mux: http.NewServeMux(), maxBody: int64(s.MaxMessage())*4/3 + 1<<20}
	methods := map[string]string{}
	for _, r := range routes() {
		h.mux.Handle(r.method+" "+r.path, h.handle(r))
		methods[r.path] += ", " + r.method
	}
	// Register handlers for all other requests, so that the answers to a wrong
	// method or path are problem details as well.
	for path, list := range methods {
		h.mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Allow", list[2:])
			writeProblem(w, problem{Type: slug("method"), Title: "Method not allowed", Status: http.StatusMethodNotAllowed, Detail: "this path takes " + list[2:]})
		})
	}
	if page {
		h.mux.HandleFunc("GET /ui", func(w http.ResponseWriter, r *http.Request) {
			if err := h.with.Gate.Host(r.Host); err != nil {
				writeProblem(w, problemOf(service.Classify(err), err))
				return
			}
			ui.Page(w, r)
		})
		h.mux.Handle("GET /{$}", http.RedirectHandler("/ui", http.StatusFound))
	}
	h.mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		writeProblem(w, problem{Type: slug("no-route"), Title: "No such path", Status: http.StatusNotFound, Detail: "/openapi.yaml describes the interface"})
	})
	return h
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.mux.ServeHTTP(w, r) }

// handle wraps a route: it checks the gate, converts errors to problem details,
// and counts.
func (h *Handler) handle(r route) http.Handler {
	counts := h.service.Metrics().Operation("rest", r.name, http.StatusOK)
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		begun := counts.Begin()
		status := http.StatusOK
		answer := newAnswer(w, h.with.Timeouts.Write, h.with.Gate)
		defer answer.release()
		defer func() { counts.End(begun, status) }() // after a panic, too
		err := h.serveAdmitted(r, answer, req)
		if err != nil {
			status = h.fail(answer, req, err)
		} else if answer.status != 0 {
			status = answer.status
		}
	})
}

// serveAdmitted serves a request if the gate admits it. No part of the body is
// read before.
func (h *Handler) serveAdmitted(r route, w *answer, req *http.Request) error {
	gate := h.with.Gate
	if r.kind == public {
		return r.serve(h, w, req)
	}
	if err := gate.Authorize(req.Host, req.Header.Get("Authorization")); err != nil {
		return err
	}
	if r.kind != watches {
		leave, err := gate.Enter(r.kind == follows)
		if err != nil {
			return err
		}
		defer leave()
	}
	if most := h.with.Timeouts.Read + h.with.Timeouts.Work; r.kind == usual && most > 0 {
		ctx, cancel := context.WithTimeout(req.Context(), most)
		defer cancel()
		req = req.WithContext(ctx)
	}
	return r.serve(h, w, req)
}

// fail answers a request with an error, unless the answer has begun, and
// returns the status.
func (h *Handler) fail(w *answer, req *http.Request, err error) int {
	class := service.Classify(err)
	if class.Hidden || class.Status >= http.StatusInternalServerError {
		h.with.Report(class, err, "id", w.Header().Get(accesslog.Header), "method", req.Method, "path", req.URL.Path)
	}
	if w.status != 0 {
		return class.Status
	}
	if errors.Is(err, service.ErrUnauthenticated) {
		w.Header().Set("WWW-Authenticate", `Bearer realm="varve"`)
	}
	if class.Retry {
		w.Header().Set("Retry-After", "1")
	}
	if req.ContentLength != 0 && !w.read {
		w.Header().Set("Connection", "close") // the body is not waited for
	}
	writeProblem(w, problemOf(class, err))
	return class.Status
}

// send writes an answer of known length.
func send(w http.ResponseWriter, status int, contentType string, body []byte) error {
	header := w.Header()
	header["Content-Type"] = []string{contentType}
	header["Content-Length"] = []string{strconv.Itoa(len(body))}
	w.WriteHeader(status)
	if _, err := w.Write(body); err != nil {
		return fmt.Errorf("%w: %w", service.ErrSlow, err) // or gone; it gets no answer
	}
	return nil
}

// sendJSON writes an answer of one JSON line.
func sendJSON(w http.ResponseWriter, status int, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return send(w, status, jsonType, append(text, '\n'))
}

func (h *Handler) metrics(w *answer, r *http.Request) error {
	h.service.Metrics().Handler().ServeHTTP(w, r)
	return nil
}

func (h *Handler) openAPI(w *answer, _ *http.Request) error {
	return send(w, http.StatusOK, "application/yaml", api.OpenAPI)
}

// healthz answers as long as the process runs.
func (h *Handler) healthz(w *answer, _ *http.Request) error {
	return sendJSON(w, http.StatusOK, map[string]string{"status": "ok"})
}

// readyz reports whether requests should be sent here.
func (h *Handler) readyz(w *answer, r *http.Request) error {
	if h.with.Ending.Err() != nil {
		return service.ErrClosing
	}
	if err := h.service.Ready(r.Context()); err != nil {
		return err
	}
	return sendJSON(w, http.StatusOK, map[string]string{"status": "ready"})
}
