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
	// ErrUnauthenticated: no token, or a wrong one.
	ErrUnauthenticated = errors.New("not authenticated")
	// ErrHost: the request is for another host.
	ErrHost = errors.New("wrong host")
	// ErrTooLarge: a body or a payload above its limit.
	ErrTooLarge = errors.New("too large")
	// ErrMediaType: the operation does not accept this type of body.
	ErrMediaType = errors.New("unsupported media type")
	// ErrRate: more requests a second than the service accepts.
	ErrRate = errors.New("too many requests")
	// ErrBusy: more concurrent requests than the service accepts.
	ErrBusy = errors.New("busy")
	// ErrClosing: the service is shutting down.
	ErrClosing = errors.New("shutting down")
	// ErrReadOnly: a write to a service that only reads.
	ErrReadOnly = errors.New("this service only reads")
	// ErrNoEvents: the store has no events, and the service only reads.
	ErrNoEvents = errors.New("the store has no events")
	// ErrSlow: the client did not send or receive the data in time.
	ErrSlow = errors.New("client is too slow")
	// ErrTime: the store reached the time limit of a request.
	ErrTime = errors.New("this takes too long")
)

// StatusGone is the metrics code of requests whose client left before the
// answer; no client receives it.
const StatusGone = 499

// Class is the meaning of an error for a client.
type Class struct {
	cause  error
	Slug   string // a name that does not change
	Title  string
	Status int        // of HTTP
	Code   codes.Code // of gRPC
	Hidden bool       // the text is not sent, because it may reveal too much
	Retry  bool       // the same request may succeed later
}

// Words for the last columns of the table.
const (
	shown, hidden = false, true
	final, again  = false, true
)

// internal is the class of an unknown error.
var internal = Class{nil, "internal", "Internal error", http.StatusInternalServerError, codes.Internal, hidden, final}

// classes are tried in this order, because an error may wrap several.
var classes = []Class{
	{ErrUnauthenticated, "unauthenticated", "Not authenticated", http.StatusUnauthorized, codes.Unauthenticated, shown, final},
	{ErrHost, "host", "Not this host", http.StatusForbidden, codes.PermissionDenied, shown, final},
	{ErrTime, "timeout", "Timed out", http.StatusServiceUnavailable, codes.DeadlineExceeded, shown, final},
	{ErrTooLarge, "too-large", "Too large", http.StatusRequestEntityTooLarge, codes.ResourceExhausted, shown, final},
	{ErrMediaType, "media-type", "Unsupported media type", http.StatusUnsupportedMediaType, codes.InvalidArgument, shown, final},
	{ErrSlow, "slow", "Client is too slow", http.StatusRequestTimeout, codes.DeadlineExceeded, shown, final},
	{ErrNoEvents, "no-events", "The store has no events", http.StatusNotFound, codes.Unimplemented, shown, final},
	{ErrReadOnly, "read-only", "This service only reads", http.StatusForbidden, codes.FailedPrecondition, shown, final},
	{ErrChanged, "changed", "The entity has changed", http.StatusPreconditionFailed, codes.Aborted, shown, final},
	{ErrMalformed, "malformed", "Malformed request", http.StatusBadRequest, codes.InvalidArgument, shown, final},
	{ErrRate, "rate", "Too many requests", http.StatusTooManyRequests, codes.ResourceExhausted, shown, again},
	{ErrBusy, "busy", "Busy", http.StatusServiceUnavailable, codes.Unavailable, shown, again},
	{quota.ErrFull, "busy", "Busy", http.StatusServiceUnavailable, codes.Unavailable, shown, again},
	{ErrClosing, "closing", "Shutting down", http.StatusServiceUnavailable, codes.Unavailable, shown, again},
	{seal.ErrUnknownKey, "unknown-key", "Payload is sealed with another key", http.StatusInternalServerError, codes.DataLoss, shown, final},
	{seal.ErrTampered, "tampered", "Payload does not open", http.StatusInternalServerError, codes.DataLoss, shown, final},
	{seal.ErrNotSealed, "not-sealed", "Payload is not sealed", http.StatusInternalServerError, codes.DataLoss, shown, final},
	{store.ErrUnknownOutcome, "unknown-outcome", "Outcome unknown", http.StatusServiceUnavailable, codes.Unavailable, hidden, final},
	{driver.ErrDiskFull, "disk-full", "Disk full", http.StatusInsufficientStorage, codes.ResourceExhausted, hidden, final},
	{driver.ErrMoved, "moved", "Store is not where it was", http.StatusServiceUnavailable, codes.Unavailable, hidden, final},
	{store.ErrCorrupt, "corrupt", "Store is damaged", http.StatusInternalServerError, codes.DataLoss, hidden, final},
	{event.ErrDuplicate, "duplicate", "Event ID is taken", http.StatusConflict, codes.AlreadyExists, shown, final},
	{event.ErrTruncated, "truncated", "Event is truncated", http.StatusGone, codes.OutOfRange, shown, final},
	{event.ErrCheckpoint, "checkpoint", "The consumer is elsewhere", http.StatusConflict, codes.Aborted, shown, final},
	{store.ErrNotFound, "not-found", "Not found", http.StatusNotFound, codes.NotFound, shown, final},
	{query.ErrSyntax, "query", "Query syntax error", http.StatusUnprocessableEntity, codes.InvalidArgument, shown, final},
	{store.ErrInvalid, "invalid", "Invalid request", http.StatusUnprocessableEntity, codes.InvalidArgument, shown, final},
	{store.ErrBlockRange, "block-range", "Block out of range", http.StatusUnprocessableEntity, codes.OutOfRange, shown, final},
	{store.ErrUnsupported, "unsupported", "Not supported by this store", http.StatusUnprocessableEntity, codes.FailedPrecondition, shown, final},
	{store.ErrUnavailable, "unavailable", "Database is not available", http.StatusServiceUnavailable, codes.Unavailable, hidden, again},
	{store.ErrLocked, "locked", "Store is locked", http.StatusServiceUnavailable, codes.Unavailable, hidden, again},
	{store.ErrReaderExpired, "reader-expired", "Read took too long", http.StatusServiceUnavailable, codes.Unavailable, hidden, again},
	{store.ErrClosed, "closing", "Shutting down", http.StatusServiceUnavailable, codes.Unavailable, hidden, again},
	{store.ErrReadOnly, "read-only", "Store is read-only", http.StatusServiceUnavailable, codes.FailedPrecondition, hidden, final},
	{context.DeadlineExceeded, "timeout", "Timed out", http.StatusServiceUnavailable, codes.DeadlineExceeded, hidden, again},
	{context.Canceled, "cancelled", "Cancelled", StatusGone, codes.Canceled, shown, final},
	// Engines use the same error for a violated constraint, but here only an
	// append's condition can cause it.
	{store.ErrConflict, "conflict", "Condition of the append does not hold", http.StatusConflict, codes.Aborted, shown, final},
}

// Classify returns the class of an error for clients. An unknown error is
// internal.
func Classify(err error) Class {
	for _, c := range classes {
		if errors.Is(err, c.cause) {
			return c
		}
	}
	return internal
}

// Detail returns the text of an error for a client.
func (c Class) Detail(err error) string {
	if c.Hidden {
		return ""
	}
	return err.Error()
}

// withoutPlace removes block and operation from an error, because the client
// does not know them.
func withoutPlace(err error) error {
	var op *entity.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return err
}
