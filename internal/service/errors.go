package service

import (
	"context"
	"errors"
	"net/http"

	"google.golang.org/grpc/codes"

	"github.com/varvedb/varve/internal/quota"
	"github.com/varvedb/varve/internal/service/seal"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/event"
	"github.com/varvedb/varve/store/query"
)

// The errors of the service, in addition to the errors of the store and of
// seal.
var (
	// ErrMalformed: a request that cannot be read.
	ErrMalformed = errors.New("malformed request")
	// ErrUnauthenticated: no token, or another one.
	ErrUnauthenticated = errors.New("not authenticated")
	// ErrHost: a request for a host that is not this one.
	ErrHost = errors.New("wrong host")
	// ErrTooLarge: a body or a payload above its limit.
	ErrTooLarge = errors.New("too large")
	// ErrMediaType: a body of a kind that the operation does not take.
	ErrMediaType = errors.New("unsupported media type")
	// ErrRate: more requests a second than the service takes.
	ErrRate = errors.New("too many requests")
	// ErrBusy: more requests at a time than the service takes.
	ErrBusy = errors.New("busy")
	// ErrClosing: the service is shutting down.
	ErrClosing = errors.New("shutting down")
	// ErrReadOnly: a write to a service that only reads.
	ErrReadOnly = errors.New("this service only reads")
	// ErrNoEvents: the store has none, and the service only reads.
	ErrNoEvents = errors.New("the store has no events")
	// ErrSlow: the client did not send or take the data in time.
	ErrSlow = errors.New("client is too slow")
	// ErrTime: the store has worked for a request as long as it may.
	ErrTime = errors.New("this takes too long")
)

// StatusGone counts requests whose client has left before the answer; none gets it.
const StatusGone = 499

// Class is what an error means to a client.
type Class struct {
	Slug   string // a name that does not change
	Title  string
	Status int        // of HTTP
	Code   codes.Code // of gRPC
	Hidden bool       // the text does not help a client and may reveal too much
	Retry  bool       // the same request may succeed later
}

// classes in the order in which they are tried: an error may wrap several.
var classes = []struct {
	cause error
	class Class
}{
	{ErrUnauthenticated, Class{Slug: "unauthenticated", Title: "Not authenticated", Status: http.StatusUnauthorized, Code: codes.Unauthenticated}},
	{ErrHost, Class{Slug: "host", Title: "Not this host", Status: http.StatusForbidden, Code: codes.PermissionDenied}},
	{ErrTime, Class{Slug: "timeout", Title: "Timed out", Status: http.StatusServiceUnavailable, Code: codes.DeadlineExceeded}},
	{ErrTooLarge, Class{Slug: "too-large", Title: "Too large", Status: http.StatusRequestEntityTooLarge, Code: codes.ResourceExhausted}},
	{ErrMediaType, Class{Slug: "media-type", Title: "Unsupported media type", Status: http.StatusUnsupportedMediaType, Code: codes.InvalidArgument}},
	{ErrSlow, Class{Slug: "slow", Title: "Client is too slow", Status: http.StatusRequestTimeout, Code: codes.DeadlineExceeded}},
	{ErrNoEvents, Class{Slug: "no-events", Title: "The store has no events", Status: http.StatusNotFound, Code: codes.Unimplemented}},
	{ErrReadOnly, Class{Slug: "read-only", Title: "This service only reads", Status: http.StatusForbidden, Code: codes.FailedPrecondition}},
	{ErrChanged, Class{Slug: "changed", Title: "The entity has changed", Status: http.StatusPreconditionFailed, Code: codes.Aborted}},
	{ErrMalformed, Class{Slug: "malformed", Title: "Malformed request", Status: http.StatusBadRequest, Code: codes.InvalidArgument}},
	{ErrRate, Class{Slug: "rate", Title: "Too many requests", Status: http.StatusTooManyRequests, Code: codes.ResourceExhausted, Retry: true}},
	{ErrBusy, Class{Slug: "busy", Title: "Busy", Status: http.StatusServiceUnavailable, Code: codes.Unavailable, Retry: true}},
	{quota.ErrFull, Class{Slug: "busy", Title: "Busy", Status: http.StatusServiceUnavailable, Code: codes.Unavailable, Retry: true}},
	{ErrClosing, Class{Slug: "closing", Title: "Shutting down", Status: http.StatusServiceUnavailable, Code: codes.Unavailable, Retry: true}},
	{seal.ErrUnknownKey, Class{Slug: "unknown-key", Title: "Payload is sealed with another key", Status: http.StatusInternalServerError, Code: codes.DataLoss}},
	{seal.ErrTampered, Class{Slug: "tampered", Title: "Payload does not open", Status: http.StatusInternalServerError, Code: codes.DataLoss}},
	{seal.ErrNotSealed, Class{Slug: "not-sealed", Title: "Payload is not sealed", Status: http.StatusInternalServerError, Code: codes.DataLoss}},
	{store.ErrUnknownOutcome, Class{Slug: "unknown-outcome", Title: "Outcome unknown", Status: http.StatusServiceUnavailable, Code: codes.Unavailable, Hidden: true}},
	{driver.ErrDiskFull, Class{Slug: "disk-full", Title: "Disk full", Status: http.StatusInsufficientStorage, Code: codes.ResourceExhausted, Hidden: true}},
	{driver.ErrMoved, Class{Slug: "moved", Title: "Store is not where it was", Status: http.StatusServiceUnavailable, Code: codes.Unavailable, Hidden: true}},
	{store.ErrCorrupt, Class{Slug: "corrupt", Title: "Store is damaged", Status: http.StatusInternalServerError, Code: codes.DataLoss, Hidden: true}},
	{event.ErrDuplicate, Class{Slug: "duplicate", Title: "Event ID is taken", Status: http.StatusConflict, Code: codes.AlreadyExists}},
	{event.ErrTruncated, Class{Slug: "truncated", Title: "Event is truncated", Status: http.StatusGone, Code: codes.OutOfRange}},
	{event.ErrCheckpoint, Class{Slug: "checkpoint", Title: "The consumer is elsewhere", Status: http.StatusConflict, Code: codes.Aborted}},
	{store.ErrNotFound, Class{Slug: "not-found", Title: "Not found", Status: http.StatusNotFound, Code: codes.NotFound}},
	{query.ErrSyntax, Class{Slug: "query", Title: "Query syntax error", Status: http.StatusUnprocessableEntity, Code: codes.InvalidArgument}},
	{store.ErrInvalid, Class{Slug: "invalid", Title: "Invalid request", Status: http.StatusUnprocessableEntity, Code: codes.InvalidArgument}},
	{store.ErrBlockRange, Class{Slug: "block-range", Title: "Block out of range", Status: http.StatusUnprocessableEntity, Code: codes.OutOfRange}},
	{store.ErrUnsupported, Class{Slug: "unsupported", Title: "Not supported by this store", Status: http.StatusUnprocessableEntity, Code: codes.FailedPrecondition}},
	{store.ErrUnavailable, Class{Slug: "unavailable", Title: "Database is not available", Status: http.StatusServiceUnavailable, Code: codes.Unavailable, Hidden: true, Retry: true}},
	{store.ErrLocked, Class{Slug: "locked", Title: "Store is locked", Status: http.StatusServiceUnavailable, Code: codes.Unavailable, Hidden: true, Retry: true}},
	{store.ErrReaderExpired, Class{Slug: "reader-expired", Title: "Read took too long", Status: http.StatusServiceUnavailable, Code: codes.Unavailable, Hidden: true, Retry: true}},
	{store.ErrClosed, Class{Slug: "closing", Title: "Shutting down", Status: http.StatusServiceUnavailable, Code: codes.Unavailable, Hidden: true, Retry: true}},
	{store.ErrReadOnly, Class{Slug: "read-only", Title: "Store is read-only", Status: http.StatusServiceUnavailable, Code: codes.FailedPrecondition, Hidden: true}},
	{context.DeadlineExceeded, Class{Slug: "timeout", Title: "Timed out", Status: http.StatusServiceUnavailable, Code: codes.DeadlineExceeded, Hidden: true, Retry: true}},
	{context.Canceled, Class{Slug: "cancelled", Title: "Cancelled", Status: StatusGone, Code: codes.Canceled}},
	// An engine calls a constraint that forbids a write by the same name; only an
	// append's condition gets this far.
	{store.ErrConflict, Class{Slug: "conflict", Title: "Condition of the append does not hold", Status: http.StatusConflict, Code: codes.Aborted}},
}

// Classify returns the class of an error for clients. An error that it does not
// know is internal.
func Classify(err error) Class {
	for i := range classes {
		if errors.Is(err, classes[i].cause) {
			return classes[i].class
		}
	}
	return Class{Slug: "internal", Title: "Internal error", Status: http.StatusInternalServerError, Code: codes.Internal, Hidden: true}
}

// Detail is the text of an error for a client.
func (c Class) Detail(err error) string {
	if c.Hidden {
		return ""
	}
	return err.Error()
}

// withoutPlace leaves block and operation out of an error: the client knows nothing of them.
func withoutPlace(err error) error {
	var op *entity.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return err
}
