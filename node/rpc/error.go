package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/varvedb/varve/internal/quota"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/query"
)

// The error codes: from JSON-RPC 2.0, from Ethereum's clients, and, from -32010
// on, Varve's.
const (
	CodeParse         = -32700 // the request is not JSON
	CodeRequest       = -32600 // it is not a request
	CodeMethod        = -32601 // there is no such method
	CodeParams        = -32602 // its parameters are wrong
	CodeInternal      = -32603 // something is wrong here
	CodeNoFilter      = -32000 // there is no such filter or subscription, any more
	CodeUnknownBlock  = -32001 // no block of that hash is known
	CodeUnavailable   = -32002 // the store cannot be read now; try again
	CodeNotSupported  = -32004 // the data is not kept in this store, or this transport cannot do it
	CodeBusy          = -32005 // more at a time than is allowed; try again
	CodeQuery         = -32010 // the text of a query is wrong; data has line and column
	CodeAhead         = -32011 // the block is ahead of the head, also after waiting for it
	CodeTooLarge      = -32012 // a request, an answer, a batch or a range is above its limit
	CodePruned        = -32013 // the block is below the horizon
	CodeRewound       = -32014 // the block that the pages are of is no longer part of the chain
	CodeTimeout       = -32015 // the call took longer than it may
	CodeCursor        = -32016 // not a cursor, or one of another query
	CodeTooManyOpened = -32017 // more filters, subscriptions or connections than are allowed
)

// failure is an error as clients receive it.
type failure struct {
	code    int
	message string
	data    any // nil: none
	cause   error
}

func (f *failure) Error() string { return f.message }
func (f *failure) Unwrap() error { return f.cause }

func failf(code int, format string, args ...any) *failure {
	return &failure{code: code, message: fmt.Sprintf(format, args...)}
}

// errAhead: the block is above the head.
var errAhead = errors.New("ahead of the head")

// classes maps errors to codes. The first match counts, because an error may
// wrap several. A class without a message uses the error's text.
var classes = []struct {
	cause   error
	code    int
	message string
}{
	{quota.ErrFull, CodeBusy, ""},
	{errAhead, CodeAhead, ""},
	{store.ErrRewound, CodeRewound, ""},
	{store.ErrBlockRange, CodePruned, ""},
	{store.ErrUnsupported, CodeNotSupported, ""},
	{query.ErrSyntax, CodeQuery, ""},
	{store.ErrInvalid, CodeParams, ""},
	{context.DeadlineExceeded, CodeTimeout, "the call took longer than it may"},
	{context.Canceled, CodeUnavailable, "the connection is closing"},
	{store.ErrUnavailable, CodeUnavailable, "the database is not available; try again"},
	{store.ErrLocked, CodeUnavailable, "the store is locked; try again"},
	{store.ErrReaderExpired, CodeUnavailable, "the read took so long that it held up the writer; try again"},
	{store.ErrClosed, CodeUnavailable, "the node is shutting down"},
}

// classify converts any error into one for a client. An unknown error becomes
// an internal one; its text is only logged.
func classify(err error) *failure {
	var f *failure
	if errors.As(err, &f) {
		return f
	}
	for _, c := range classes {
		if !errors.Is(err, c.cause) {
			continue
		}
		f := &failure{code: c.code, message: c.message, cause: err}
		if f.message == "" {
			f.message = err.Error()
		}
		var syntax *query.SyntaxError
		if errors.As(err, &syntax) {
			f.data = map[string]any{"line": syntax.Line, "column": syntax.Column}
		}
		return f
	}
	return &failure{code: CodeInternal, message: "internal error", cause: err}
}

// appendError appends the member "error".
func appendError(b []byte, f *failure) []byte {
	text, err := json.Marshal(struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
		Data    any    `json:"data,omitempty"`
	}{f.code, f.message, f.data})
	if err != nil {
		text = []byte(`{"code":-32603,"message":"internal error"}`)
	}
	return append(append(b, `"error":`...), text...)
}
