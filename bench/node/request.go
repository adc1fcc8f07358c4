package node

import (
	"encoding/json"

	"github.com/varvedb/varve/node/chain"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
)

// request is a call and the check of its answer.
type request struct {
	method string
	params []any
	check  func(answer []byte) error
}

func (r *request) body() ([]byte, error) {
	return json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": r.method, "params": append([]any{}, r.params...)})
}

// checked reads an answer before it is checked.
func checked[T any](check func(got *T) error) func([]byte) error {
	return func(answer []byte) error {
		got := new(T)
		if err := decode(answer, got); err != nil {
			return err
		}
		return check(got)
	}
}

// fields are those of an entity that are asked for.
type fields uint16

const (
	withKey fields = 1 << iota
	withAttributes
	withSynthetic
	withPayload
	withContentType
	withExpiration
	withOwner
	withCreator
	withCreation
	withModification
	withTxIndex
	withOpIndex

	withAll = withOpIndex<<1 - 1 - withSynthetic
)

// options are their names in a request, from the lowest bit on.
var options = [...]string{
	"key", "attributes", "syntheticAttributes", "payload", "contentType", "expiration", "owner", "creator",
	"createdAtBlock", "lastModifiedAtBlock", "transactionIndexInBlock", "operationIndexInTransaction",
}

// question is an arkiv_query.
type question struct {
	text   string
	at     uint64 // store.Head for none
	fields fields
	order  []store.Order
	limit  int // 0 for none
	cursor string
}

func (q *question) params() []any {
	include := make(map[string]bool, len(options))
	for i, name := range options {
		include[name] = q.fields&(1<<i) != 0
	}
	o := map[string]any{"includeData": include}
	if q.at != store.Head {
		o["atBlock"] = chain.Quantity(q.at)
	}
	if q.limit > 0 {
		o["resultsPerPage"] = chain.Quantity(q.limit)
	}
	var order []map[string]any
	for _, by := range q.order {
		kind := "string"
		if by.Kind == entity.Numeric {
			kind = "numeric"
		}
		order = append(order, map[string]any{"name": by.Name, "type": kind, "desc": by.Desc})
	}
	if len(order) > 0 {
		o["orderBy"] = order
	}
	if q.cursor != "" {
		o["cursor"] = q.cursor
	}
	return []any{q.text, o}
}
