package rest

import (
	"net/http"
	"sync/atomic"
	"time"

	"github.com/varvedb/varve/internal/quota"
	"github.com/varvedb/varve/internal/service"
)

// answer is the answer to a request, begun or not, with the resources of the
// request.
type answer struct {
	http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration // to write; zero: none
	status  int           // that was sent
	hold    *quota.Hold
	decoded *quota.Hold // memory of the decoded body
	reading atomic.Bool // the body is being read
	read    bool        // the body has been read
}

func newAnswer(w http.ResponseWriter, timeout time.Duration, gate *service.Gate) *answer {
	a := &answer{ResponseWriter: w, control: http.NewResponseController(w), timeout: timeout}
	a.hold, a.decoded = gate.Memory.Hold(a.cutOff), gate.Decoding.Hold(nil)
	return a
}

// release frees the request's memory.
func (a *answer) release() {
	a.hold.Release()
	a.decoded.Done()
}

// cutOff aborts reading the body or writing the answer at once.
func (a *answer) cutOff() {
	past := time.Unix(1, 0)
	if a.reading.Load() {
		_ = a.control.SetReadDeadline(past)
	} else {
		_ = a.control.SetWriteDeadline(past)
	}
}

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) {
	a.status = status
	a.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter. The client must receive the data within
// the timeout.
func (a *answer) Write(b []byte) (int, error) {
	if a.status == 0 {
		a.status = http.StatusOK
	}
	if a.timeout > 0 {
		// Only a writer without a connection, as in tests, does not support
		// this.
		_ = a.control.SetWriteDeadline(time.Now().Add(a.timeout))
	}
	a.hold.Await()
	return a.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController find the connection.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }
