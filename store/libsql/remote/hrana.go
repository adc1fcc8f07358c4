package remote

import (
	"bytes"
	"context"
	sqldriver "database/sql/driver"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/libsql/internal/guard"
)

// This file implements the client side of Hrana 3 over HTTP, as JSON
// (https://github.com/tursodatabase/libsql/blob/main/docs/HRANA_3_SPEC.md). A
// stream is a database connection that spans requests. Each answer contains a
// baton, which identifies the stream in the next request.

// step is a statement of a batch, which runs if its condition holds.
type step struct {
	Condition *condition `json:"condition,omitempty"`
	Stmt      statement  `json:"stmt"`
}

type statement struct {
	SQL      string  `json:"sql"`
	Args     []value `json:"args,omitempty"`
	WantRows bool    `json:"want_rows"`
}

// condition is one of three kinds: ok (that step succeeded), not,
// is_autocommit.
type condition struct {
	Type string     `json:"type"`
	Step *int       `json:"step,omitempty"`
	Cond *condition `json:"cond,omitempty"`
}

// inTransaction holds while a transaction is open.
var inTransaction = &condition{Type: "not", Cond: &condition{Type: "is_autocommit"}}

// chain makes each step depend on the success of the one before, and the first
// one on the given condition.
func chain(steps []step, first *condition) {
	for i := range steps {
		if i == 0 {
			steps[i].Condition = first
			continue
		}
		before := i - 1
		steps[i].Condition = &condition{Type: "ok", Step: &before}
	}
}

// value is one SQLite value.
type value struct {
	Type   string  `json:"type"`
	Value  any     `json:"value,omitempty"`
	Base64 *string `json:"base64,omitempty"`
}

// newValue converts an argument, and returns its size.
func newValue(arg any) (value, int, error) {
	switch v := arg.(type) {
	case nil:
		return value{Type: "null"}, 0, nil
	case int64:
		return value{Type: "integer", Value: strconv.FormatInt(v, 10)}, 8, nil
	case string:
		return value{Type: "text", Value: v}, len(v), guard.Text(v)
	case []byte:
		text := base64.RawStdEncoding.EncodeToString(v)
		return value{Type: "blob", Base64: &text}, len(v), nil
	}
	return value{}, 0, fmt.Errorf("argument of type %T: %w", arg, driver.ErrUnsupported)
}

// native converts a value of a result.
func (v value) native() (sqldriver.Value, error) {
	text, isText := v.Value.(string)
	switch {
	case v.Type == "null":
		return nil, nil
	case v.Type == "integer" && isText:
		return strconv.ParseInt(text, 10, 64)
	case v.Type == "text" && isText:
		return text, nil
	case v.Type == "blob" && v.Base64 != nil:
		return base64.RawStdEncoding.DecodeString(strings.TrimRight(*v.Base64, "="))
	case v.Type == "float":
		if f, ok := v.Value.(float64); ok {
			return f, nil
		}
	}
	return nil, fmt.Errorf("value of type %q: %w", v.Type, errProtocol)
}

// column is a column of a result.
type column struct {
	Name string `json:"name"`
}

// result is the result of a statement.
type result struct {
	Cols     []column  `json:"cols"`
	Rows     [][]value `json:"rows"`
	Affected int64     `json:"affected_row_count"`
}

// wireError is an error in a server's answer.
type wireError struct {
	Message string `json:"message"`
	Code    string `json:"code"`
}

// Error codes. The specification leaves them to the server; these are sqld's.
const (
	codeTimeout  = "TRANSACTION_TIMEOUT" // a client that waited for the write lock got it
	codeBusy     = "TRANSACTION_BUSY"
	codeExpired  = "STREAM_EXPIRED"
	codeTooLarge = "RESPONSE_TOO_LARGE"
)

// entry is a line of a cursor's answer. Its fields depend on its type.
type entry struct {
	Type     string     `json:"type"`
	Cols     []column   `json:"cols"`
	Row      []value    `json:"row"`
	Affected int64      `json:"affected_row_count"`
	Error    *wireError `json:"error"`
}

// stream is a stream of a server. The zero value is opened by the first
// request.
type stream struct {
	baton string
	base  string // where the server wants the next request, if elsewhere
}

// pointer has the baton and address for the next request, from an answer.
type pointer struct {
	Baton   *string `json:"baton"`
	BaseURL *string `json:"base_url"`
}

func (s *stream) follow(p pointer) {
	s.baton = ""
	if p.Baton != nil {
		s.baton = *p.Baton
	}
	if p.BaseURL != nil {
		s.base = strings.TrimSuffix(*p.BaseURL, "/")
	}
}

// batch runs steps in one request and returns all results. The error is the
// first failed step's, or the request's.
func (c *connector) batch(ctx context.Context, s *stream, steps []step) ([]*result, error) {
	var answer struct {
		Results []*result    `json:"step_results"`
		Errors  []*wireError `json:"step_errors"`
	}
	request := map[string]any{"type": "batch", "batch": map[string]any{"steps": steps}}
	if err := c.pipeline(ctx, s, request, &answer); err != nil {
		return nil, err
	}
	if len(answer.Results) != len(steps) || len(answer.Errors) != len(steps) {
		return nil, c.brokenStream(fmt.Errorf("%d results of %d steps: %w", len(answer.Results), len(steps), errProtocol))
	}
	for i := range steps {
		switch {
		case answer.Errors[i] != nil:
			return nil, c.explain(*answer.Errors[i])
		case answer.Results[i] == nil:
			return nil, c.ended(errNotRun)
		}
	}
	return answer.Results, nil
}

// pipeline sends one request and decodes the result in the answer.
func (c *connector) pipeline(ctx context.Context, s *stream, request, into any) error {
	requests := []any{}
	if request != nil {
		requests = append(requests, request)
	}
	body, err := c.post(ctx, s, "/v3/pipeline", "requests", requests)
	if err != nil {
		return err
	}
	defer body.Close()
	var answer struct {
		pointer
		Results []struct {
			Response struct {
				Result json.RawMessage `json:"result"`
			} `json:"response"`
			Error *wireError `json:"error"`
		} `json:"results"`
	}
	if err := json.NewDecoder(body).Decode(&answer); err != nil {
		return c.brokenStream(notHrana(ctx, err))
	}
	s.follow(answer.pointer)
	switch {
	case len(answer.Results) != len(requests):
		return c.brokenStream(fmt.Errorf("%d results of %d requests: %w", len(answer.Results), len(requests), errProtocol))
	case request == nil:
		return nil
	case answer.Results[0].Error != nil:
		return c.explain(*answer.Results[0].Error)
	case into == nil:
		return nil
	}
	if err := json.Unmarshal(answer.Results[0].Response.Result, into); err != nil {
		return c.brokenStream(notHrana(ctx, err))
	}
	return nil
}

// cursor is a streamed answer to a batch, of any size.
type cursor struct {
	link  *connector
	ctx   context.Context
	body  io.ReadCloser
	lines *json.Decoder
}

// cursor starts to run steps. The stream's next baton is known before they end.
func (c *connector) cursor(ctx context.Context, s *stream, steps []step) (*cursor, error) {
	body, err := c.post(ctx, s, "/v3/cursor", "batch", map[string]any{"steps": steps})
	if err != nil {
		return nil, err
	}
	lines := json.NewDecoder(body)
	var first pointer
	if err := lines.Decode(&first); err != nil {
		return nil, errors.Join(c.brokenStream(notHrana(ctx, err)), body.Close())
	}
	s.follow(first)
	return &cursor{link: c, ctx: ctx, body: body, lines: lines}, nil
}

// next returns the next entry, and io.EOF after the last one.
func (c *cursor) next() (entry, error) {
	var e entry
	err := c.lines.Decode(&e)
	switch {
	case errors.Is(err, io.EOF):
		return e, io.EOF
	case err != nil:
		return e, c.link.brokenStream(notHrana(c.ctx, err))
	case e.Error != nil:
		return e, c.link.explain(*e.Error)
	}
	return e, nil
}

// post sends a request. The caller reads the answer.
func (c *connector) post(ctx context.Context, s *stream, path, name string, content any) (io.ReadCloser, error) {
	message := map[string]any{name: content}
	if s.baton != "" {
		message["baton"] = s.baton
	}
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(message); err != nil {
		return nil, err
	}
	base := c.target
	if s.base != "" {
		base = s.base
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, base+path, &buffer)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	if c.namespace != "" {
		request.Header.Set("X-Namespace-Bin", base64.RawStdEncoding.EncodeToString([]byte(c.namespace)))
	}
	response, err := c.client.Do(request)
	if err != nil {
		return nil, c.brokenStream(err)
	}
	if response.StatusCode == http.StatusOK {
		return response.Body, nil
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(response.Body, 2*maxMessage)) // what there is of it
	return nil, c.refused(response.StatusCode, text)
}
