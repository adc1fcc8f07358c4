package rest

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/varvedb/varve/internal/jsonuint"
	"github.com/varvedb/varve/internal/service"
	"github.com/varvedb/varve/store/event"
	"github.com/varvedb/varve/store/query"
)

const (
	jsonType    = "application/json"
	problemType = "application/problem+json"
)

// problem is an error as problem details (RFC 9457). Line and column are the
// position of the mistake in the body, or in the text of the query.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	*conflict
}

// conflict describes the event that kept an append from happening.
type conflict struct {
	Position jsonuint.Uint `json:"position"` // of the event that matches the condition
	Item     int           `json:"item"`     // of the condition's query, from 0
	After    jsonuint.Uint `json:"after"`    // of the condition
}

// slug makes a problem type from a name.
func slug(name string) string { return "urn:varve:problem:" + name }

func problemOf(class service.Class, err error) problem {
	p := problem{Type: slug(class.Slug), Title: class.Title, Status: class.Status, Detail: class.Detail(err)}
	var body *bodyError
	var syntax *query.SyntaxError
	var taken *event.ConflictError
	switch {
	case errors.As(err, &body):
		p.Line, p.Column = body.line, body.column
	case errors.As(err, &syntax):
		p.Line, p.Column = syntax.Line, syntax.Column
	case errors.As(err, &taken):
		p.conflict = &conflict{jsonuint.Uint(taken.Position), taken.Item, jsonuint.Uint(taken.After)}
	}
	return p
}

func writeProblem(w http.ResponseWriter, p problem) {
	body, err := json.Marshal(p)
	if err != nil {
		body = nil // texts and numbers can always be marshalled
	}
	header := w.Header()
	header.Set("X-Content-Type-Options", "nosniff")
	// If sending fails, the client has gone.
	_ = send(w, p.Status, problemType, append(body, '\n'))
}
