package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	"github.com/varvedb/varve/store/libsql/internal/guard"
)

// maxMessage bounds what an error repeats of a server's answer, in bytes.
const maxMessage = 1000

// tooLarge is a server's refusal to answer with more than it was started for.
const tooLarge = "Response is too large"

// serverError is an error from a server or on the way to it.
type serverError struct {
	server  string
	message string // without the token
	cause   error  // nil if its text has the token in it
}

func (e *serverError) Error() string { return "libsql server " + e.server + ": " + e.message }

// Unwrap returns the client library's error.
func (e *serverError) Unwrap() error { return e.cause }

// explain makes an error of the contract of one of the client library about a
// statement. Unless the server has plainly answered that the statement failed,
// the state of its transaction is unknown, and the connection is given up.
func (c *connector) explain(err error, text string) error {
	if err == nil {
		return nil
	}
	message, answered := answer(err, text)
	if strings.Contains(message, tooLarge) {
		message += "; start the server with a larger --max-response-size"
	}
	e := &serverError{server: c.server, message: c.redact(message), cause: c.causeOf(err)}
	if !answered {
		return fmt.Errorf("%w: %w", e, guard.ErrBroken)
	}
	if sentinel := guard.Sentinel(strings.TrimPrefix(message, "SQLite error: ")); sentinel != nil {
		return fmt.Errorf("%w: %w", sentinel, e)
	}
	return e
}

// redact takes the token out of a message, should a server repeat it, and
// bounds the message's length.
func (c *connector) redact(message string) string {
	if c.token != "" {
		message = strings.ReplaceAll(message, c.token, "[token]")
	}
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "") + "…"
	}
	return message
}

// causeOf returns what may be kept of an error. Not a bad connection: database/sql
// would try the statement again.
func (c *connector) causeOf(err error) error {
	switch {
	case c.token != "" && strings.Contains(err.Error(), c.token):
		return nil
	case errors.Is(err, context.Canceled):
		return context.Canceled
	case errors.Is(err, context.DeadlineExceeded):
		return context.DeadlineExceeded
	case isBadConn(err):
		return nil
	}
	return err
}

// plain is the type of an error that is no more than a text.
var plain = reflect.TypeOf(io.EOF)

// answer returns the message of an error, and whether it is the server's
// answer to the statement. The client library gives both kinds as texts:
//
//	failed to execute SQL:⏎SQLite error: UNIQUE constraint failed: t.a    (HTTP)
//	failed to execute SQL:⏎error code 401: Unauthorized                   (HTTP status)
//	unable to execute INSERT …: SQLite error: UNIQUE constraint failed    (WebSocket)
func answer(err error, text string) (message string, answered bool) {
	inner := err
	for next := errors.Unwrap(inner); next != nil; next = errors.Unwrap(inner) {
		inner = next
	}
	message = err.Error()
	if rest, ok := strings.CutPrefix(message, "unable to execute "+text+": "); ok {
		return rest, true
	}
	rest, executed := strings.CutPrefix(message, "failed to execute SQL:\n")
	message = rest
	status, isStatus := strings.CutPrefix(message, "error code ")
	switch {
	case isStatus:
		return explainStatus(status), false
	case isJSON(inner):
		return "its answer is not of the protocol Hrana (is it a libSQL server?): " + message, false
	case isBadConn(err), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), inner.Error() == "no response received":
		return message, false
	}
	return message, executed && reflect.TypeOf(inner) == plain
}

// explainStatus adds to an HTTP status what can be done about it.
func explainStatus(status string) string {
	code, _, _ := strings.Cut(status, ":")
	switch code {
	case "401", "403":
		return "it refuses the token, or wants one (parameter authToken or " + tokenVariable + "): HTTP status " + status
	case "404":
		return "no libSQL server answers at this address: HTTP status " + status
	}
	return "HTTP status " + status
}

func isJSON(err error) bool {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	return errors.As(err, &syntax) || errors.As(err, &kind)
}
