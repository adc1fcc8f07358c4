package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/libsql/internal/guard"
)

// maxMessage bounds how much of a server's answer an error repeats, in bytes.
const maxMessage = 1000

var (
	// errEnded: the server has rolled the transaction back.
	errEnded = errors.New("the transaction has been rolled back; begin it again")

	// errTooLarge: the rows do not fit into one answer of the server.
	errTooLarge = errors.New("the answer is too large for the server")

	errNotRun   = errors.New("the server ended the transaction")
	errProtocol = errors.New("its answer is not of the protocol Hrana (is it a libSQL server?)")
)

// serverError is an error from a server or on the way to it.
type serverError struct {
	server  string
	message string // without the token
	cause   error  // nil if its text has the token in it
}

func (e *serverError) Error() string { return "libsql server " + e.server + ": " + e.message }

// Unwrap returns the cause.
func (e *serverError) Unwrap() error { return e.cause }

// redactedError converts an error whose text may contain the token.
func (c *connector) redactedError(err error) *serverError {
	e := &serverError{server: c.server, message: c.redact(err.Error())}
	if c.token == "" || !strings.Contains(err.Error(), c.token) {
		e.cause = err
	}
	return e
}

// redact removes the token from a message, in case a server repeats it, and
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

// brokenStream returns the error for a request after which the stream's state
// is unknown.
func (c *connector) brokenStream(err error) error {
	return fmt.Errorf("%w: %w", c.redactedError(err), guard.ErrBroken)
}

// ended returns the error for a transaction that the server has rolled back.
func (c *connector) ended(err error) error {
	return fmt.Errorf("%w: %w", c.redactedError(err), errEnded)
}

// notHrana returns the error for an answer that could not be read: ctx has
// ended, the connection broke, or the answer is not Hrana.
func notHrana(ctx context.Context, err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &syntax), errors.As(err, &kind):
		return fmt.Errorf("%w: %w", errProtocol, err)
	}
	return err
}

// explain converts a server's error into an error of the driver package.
func (c *connector) explain(e wireError) error {
	message := strings.TrimPrefix(e.Message, "SQLite error: ")
	failed := c.redactedError(errors.New(e.Message))
	switch {
	case e.Code == codeTimeout:
		return c.ended(errors.New(e.Message + ": another client has waited for the write lock"))
	case e.Code == codeBusy:
		return fmt.Errorf("%w: %w", driver.ErrLocked, failed)
	case e.Code == codeTooLarge:
		return fmt.Errorf("%w: %w; start it with a larger --max-response-size", failed, errTooLarge)
	case strings.HasSuffix(message, "string or blob too big"):
		return fmt.Errorf("%w: %w; its max_row_size bounds a row", driver.ErrUnsupported, failed)
	case strings.Contains(message, "parser overflowed its stack"): // the server's own, before SQLite's
		return fmt.Errorf("%w: %w", driver.ErrUnsupported, failed)
	}
	if sentinel := guard.Sentinel(message); sentinel != nil {
		return fmt.Errorf("%w: %w", sentinel, failed)
	}
	return failed
}

// tooBig returns the error for a value or row that the server would refuse.
func tooBig(size, most int) error {
	return fmt.Errorf("a row of %d bytes: %w: the server takes %d; one with a larger max_row_size needs the parameter max_row",
		size, driver.ErrUnsupported, most)
}

// refused converts an HTTP error status and its body into an error.
func (c *connector) refused(status int, body []byte) error {
	var e struct {
		wireError
		Error string `json:"error"`
	}
	text := strings.TrimSpace(string(body))
	if json.Unmarshal(body, &e) == nil && e.Message+e.Error != "" {
		text = e.Message + e.Error
	}
	if e.Code == codeExpired {
		return c.ended(errors.New(text))
	}
	text = fmt.Sprintf("HTTP status %d: %s", status, text)
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		text = "it refuses the token, or wants one (parameter authToken or " + tokenVariable + "): " + text
	case http.StatusNotFound:
		text = "no libSQL server answers at this address, or it has no such namespace: " + text
	}
	return c.brokenStream(errors.New(text))
}
