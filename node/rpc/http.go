package rpc

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/varvedb/varve/internal/accesslog"
)

// serve answers one HTTP request.
func (h *Handler) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet && strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		h.serveSocket(w, r)
		return
	}
	h.allow(w.Header(), r.Header.Get("Origin"))
	switch r.Method {
	case http.MethodPost:
		h.post(w, r)
	case http.MethodOptions:
		w.WriteHeader(http.StatusNoContent)
	default:
		w.Header().Set("Allow", "POST, OPTIONS")
		http.Error(w, "JSON-RPC is a POST, or a WebSocket connection", http.StatusMethodNotAllowed)
	}
}

// allow adds the headers that let a page of an origin read the answer, if it
// may.
func (h *Handler) allow(header http.Header, origin string) {
	if len(h.opts.Origins) == 0 {
		return
	}
	header.Add("Vary", "Origin")
	if origin == "" || !h.allowed(origin) {
		return
	}
	header.Set("Access-Control-Allow-Origin", origin)
	header.Set("Access-Control-Allow-Methods", "POST, OPTIONS")
	header.Set("Access-Control-Allow-Headers", "Content-Type, Authorization, Traceparent, "+accesslog.Header)
	header.Set("Access-Control-Expose-Headers", accesslog.Header)
	header.Set("Access-Control-Max-Age", "600")
}

// allowed reports whether pages of another origin may make calls.
func (h *Handler) allowed(origin string) bool {
	return slices.ContainsFunc(h.opts.Origins, func(o string) bool { return o == "*" || strings.EqualFold(o, origin) })
}

// mediaTypes are the content types that clients use for JSON-RPC. For these a
// browser asks for permission (a CORS preflight) before it sends a request of
// another origin's page. For text/plain, or without a type, it would not ask.
var mediaTypes = []string{"application/json", "application/json-rpc", "application/jsonrequest"}

func (h *Handler) post(w http.ResponseWriter, r *http.Request) {
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	if !slices.Contains(mediaTypes, strings.ToLower(strings.TrimSpace(kind))) {
		http.Error(w, "want Content-Type: application/json", http.StatusUnsupportedMediaType)
		return
	}
	if coding := r.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		w.Header().Set("Accept-Encoding", "identity")
		http.Error(w, "want a body without Content-Encoding", http.StatusUnsupportedMediaType)
		return
	}
	var in bytes.Buffer
	control := http.NewResponseController(w)
	// One hold covers the body and then its answer: between two holds a decoded
	// body would not be counted.
	mine := h.memory.Hold(func() {
		past := time.Unix(1, 0)
		_, _ = control.SetReadDeadline(past), control.SetWriteDeadline(past)
	})
	defer mine.Done()
	status, fault, most := http.StatusOK, (*failure)(nil), h.opts.Limits.Request
	if err := h.receive(r.Context(), mine, &in, http.MaxBytesReader(w, r.Body, most), r.ContentLength); err != nil {
		status, fault = receiveFault(err, most)
	}
	var note string
	var out []byte
	parts := parts{to: w, control: control, timeout: h.opts.Limits.Send}
	if fault != nil {
		h.metrics.count(unknown, fault.code)
		out = append(appendError(appendHead(nil, null), fault), '}')
		w.Header().Set("Connection", "close") // the rest is not read
	} else {
		m := message{hold: mine, size: int64(in.Cap()), part: parts.send}
		note = h.handle(r.Context(), &m, in.Bytes())
		out = m.out
		if m.broken {
			// Break the connection in the middle of the answer, because a
			// client would take the data for the whole answer, even with an
			// error after them.
			accesslog.Add(r.Context(), slog.String("call", clip(note)))
			panic(http.ErrAbortHandler)
		}
	}
	accesslog.Add(r.Context(), slog.String("call", clip(note)))
	if len(out) == 0 {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	if parts.begun {
		mine.Await()
		_ = parts.send(out) // a client that does not take it is gone
		return
	}
	header := w.Header()
	header["Content-Type"] = []string{"application/json"}
	header["Content-Length"] = []string{strconv.Itoa(len(out))}
	_ = control.SetWriteDeadline(time.Now().Add(h.opts.Limits.Send)) // a connection without deadlines, as in tests, needs none
	mine.Shrink(int64(in.Cap() + cap(out)))
	mine.Await()
	w.WriteHeader(status)
	_, _ = w.Write(out) // a client that does not take it is gone
}

// parts sends an answer in parts. The client must read each part within a time
// limit.
type parts struct {
	to      http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration
	begun   bool
}

func (p *parts) send(part []byte) error {
	if !p.begun {
		p.begun = true
		p.to.Header()["Content-Type"] = []string{"application/json"}
		p.to.WriteHeader(http.StatusOK)
	}
	if err := p.control.SetWriteDeadline(time.Now().Add(p.timeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	_, err := p.to.Write(part)
	return err
}
