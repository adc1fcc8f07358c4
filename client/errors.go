package client

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/event"
)

// errCut: a stream ended without an error and without its end mark.
var errCut = status.Error(codes.Unavailable, "the stream was cut")

// kinds maps a service's error reasons to errors for callers.
var kinds = map[string]error{
	"BUSY":            driver.ErrUnavailable,
	"CHECKPOINT":      event.ErrCheckpoint,
	"CANCELLED":       driver.ErrUnavailable, // by another than the caller
	"CLOSING":         driver.ErrClosed,
	"CONFLICT":        driver.ErrConflict,
	"CORRUPT":         driver.ErrCorrupt,
	"DISK_FULL":       driver.ErrDiskFull,
	"DUPLICATE":       event.ErrDuplicate,
	"INVALID":         event.ErrInvalid,
	"LOCKED":          driver.ErrLocked,
	"MALFORMED":       event.ErrInvalid,
	"NO_EVENTS":       driver.ErrUnsupported,
	"NOT_SEALED":      driver.ErrCorrupt,
	"RATE":            driver.ErrUnavailable,
	"READER_EXPIRED":  driver.ErrReaderExpired,
	"READ_ONLY":       driver.ErrReadOnly,
	"SLOW":            driver.ErrUnavailable,
	"TAMPERED":        driver.ErrCorrupt,
	"TIMEOUT":         driver.ErrUnavailable,
	"TOO_LARGE":       event.ErrInvalid,
	"TRUNCATED":       event.ErrTruncated,
	"UNAVAILABLE":     driver.ErrUnavailable,
	"UNKNOWN_OUTCOME": driver.ErrUnknownOutcome,
	"UNSUPPORTED":     driver.ErrUnsupported,
}

// infoOf returns the service's description of an error; nil if the error does
// not come from the service.
func infoOf(err error) *errdetails.ErrorInfo {
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok && info.GetDomain() == "varve" {
			return info
		}
	}
	return nil
}

// transient reports whether the same request may succeed later.
func transient(err error) bool {
	switch infoOf(err).GetReason() {
	case "RATE", "SLOW", "TIMEOUT", "CANCELLED":
		return true
	}
	return status.Code(err) == codes.Unavailable
}

// undone reports whether the service refused a request before executing it.
func undone(err error) bool {
	reason := infoOf(err).GetReason()
	return reason == "RATE" || reason == "BUSY"
}

// unanswered reports whether an error leaves the request's outcome unknown.
func unanswered(err error) bool {
	if info := infoOf(err); info != nil {
		return info.GetReason() == "UNKNOWN_OUTCOME"
	}
	switch status.Code(err) {
	case codes.Unavailable, codes.Canceled, codes.DeadlineExceeded, codes.Internal, codes.Unknown:
		return true
	}
	return false
}

// decided reports whether an error proves that the events are not stored, not
// even by an earlier attempt: the service would have recognised their IDs.
func decided(err error) bool {
	switch infoOf(err).GetReason() {
	case "CONFLICT", "DUPLICATE", "INVALID", "MALFORMED", "TOO_LARGE":
		return true
	}
	return false
}

// fault is an error of the service, with its text and status.
type fault struct {
	text   string
	kind   error
	status *status.Status
}

func (e *fault) Error() string { return e.text }

func (e *fault) Unwrap() error { return e.kind }

// GRPCStatus returns the service's status, for package status.
func (e *fault) GRPCStatus() *status.Status { return e.status }

// faultOf converts an error of gRPC.
func faultOf(op string, err error) error {
	f := &fault{status: status.Convert(err)}
	info := infoOf(err)
	f.text = f.status.Message()
	if info == nil {
		f.kind = kindOf(f.status.Code())
	} else if f.kind = particular(info); f.kind == nil {
		f.kind = kinds[info.GetReason()]
	}
	if !strings.HasPrefix(f.text, op) {
		f.text = op + ": " + f.text
	}
	return f
}

// particular returns the errors that carry more than their kind.
func particular(info *errdetails.ErrorInfo) error {
	number := func(name string) uint64 {
		n, _ := strconv.ParseUint(info.GetMetadata()[name], 10, 64) // zero, as if it were not known
		return n
	}
	position := number("position")
	switch reason := info.GetReason(); {
	case position == 0:
	case reason == "CONFLICT":
		return &event.ConflictError{Position: position, Item: int(number("item")), After: number("after")}
	case reason == "TRUNCATED":
		return &event.TruncatedError{Position: position, Before: number("before")}
	}
	return nil
}

// kindOf returns the kind of an error that gRPC made itself, on either side.
// (The other side also knows the call's deadline, and may end the call first.)
func kindOf(code codes.Code) error {
	switch code {
	case codes.Unavailable, codes.Canceled:
		return driver.ErrUnavailable
	case codes.DeadlineExceeded:
		return context.DeadlineExceeded
	case codes.ResourceExhausted: // more than the service takes in one message
		return event.ErrInvalid
	}
	return nil
}

// repeat repeats a call until it succeeds, repeating cannot help, or the
// patience ends.
func (e *Events) repeat(ctx context.Context, op string, call func(*patience) (again bool, err error)) error {
	if e.closed.Load() {
		return fmt.Errorf("%s: %w", op, driver.ErrClosed)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	p := &patience{retry: e.retry}
	p.reset()
	for {
		again, err := call(p)
		if err == nil {
			return nil
		}
		if again && !e.closed.Load() && p.wait(ctx) {
			continue
		}
		// The caller's own action comes first: it has cancelled, or closed the
		// client. The timer of ctx may fire later than gRPC's.
		why := ctx.Err()
		if at, ok := ctx.Deadline(); ok && why == nil && !time.Now().Before(at) {
			why = context.DeadlineExceeded
		}
		switch {
		case why != nil:
			return fmt.Errorf("%s: %w", op, why)
		case e.closed.Load():
			return fmt.Errorf("%s: %w", op, driver.ErrClosed)
		}
		return faultOf(op, err)
	}
}

// The pauses between repeated calls.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = 2 * time.Second
)

// patience is the remaining time in which a call is repeated.
type patience struct {
	retry time.Duration
	until time.Time // zero: without end
	pause time.Duration
}

// reset restarts the time, because a message has arrived.
func (p *patience) reset() {
	p.until, p.pause = time.Now().Add(p.retry), firstPause
}

// wait pauses, longer each time, and reports whether to repeat the call. The
// pauses are random, so that clients that were cut off together do not return
// together.
func (p *patience) wait(ctx context.Context) bool {
	pause := p.pause/2 + rand.N(p.pause)
	if p.retry < 0 || !p.until.IsZero() && time.Now().Add(pause).After(p.until) {
		return false
	}
	p.pause = min(2*p.pause, lastPause)
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
