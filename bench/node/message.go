package node

import (
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/varvedb/varve/node/chain"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
)

// everything is all parts of an entity. Its key is always requested.
const everything = store.Metadata | store.Attributes | store.Content

// included has the request options for each set of parts.
var included = func() (list [everything + 1]map[string]bool) {
	for parts := range list {
		with := func(part store.Parts) bool { return store.Parts(parts)&part != 0 }
		others := with(store.Metadata)
		list[parts] = map[string]bool{
			"key": true, "attributes": with(store.Attributes), "syntheticAttributes": false, "payload": with(store.Content),
			"contentType": others, "expiration": others, "owner": others, "creator": others, "createdAtBlock": others,
			"lastModifiedAtBlock": others, "transactionIndexInBlock": others, "operationIndexInTransaction": others,
		}
	}
	return list
}()

// question is an arkiv_query request.
type question struct {
	text   string
	at     uint64      // store.Head for none
	parts  store.Parts // in addition to the key
	limit  int         // 0 for none
	cursor string
}

func (q *question) params() []any {
	options := map[string]any{"includeData": included[q.parts]}
	if q.at != store.Head {
		options["atBlock"] = fmt.Sprintf("%#x", q.at)
	}
	if q.limit > 0 {
		options["resultsPerPage"] = fmt.Sprintf("%#x", q.limit)
	}
	if q.cursor != "" {
		options["cursor"] = q.cursor
	}
	return []any{q.text, options}
}

// result decodes an answer that must have a result and nothing else.
func result[T any](answer []byte) (T, error) {
	var a struct {
		Version string `json:"jsonrpc"`
		ID      int    `json:"id"`
		Result  T      `json:"result"`
	}
	err := json.Unmarshal(answer, &a, json.RejectUnknownMembers(true))
	return a.Result, err
}

// page is an answer to a query.
type page struct {
	Found  []found        `json:"data"`
	Block  chain.Quantity `json:"blockNumber"`
	Cursor string         `json:"cursor"`
}

// timing is an answer to arkiv_getBlockTiming.
type timing struct {
	Block    uint64 `json:"current_block"`
	Time     uint64 `json:"current_block_time"`
	Duration uint64 `json:"duration"`
}

// found is an entity in an answer; omitted parts are nil.
type found struct {
	Key         *entity.Hash        `json:"key"`
	Payload     *chain.Data         `json:"value"`
	ContentType *string             `json:"contentType"`
	Owner       chain.Address       `json:"owner"`
	Creator     chain.Address       `json:"creator"`
	Expires     uint64              `json:"expiresAt"`
	Created     uint64              `json:"createdAtBlock"`
	Modified    uint64              `json:"lastModifiedAtBlock"`
	Tx          uint32              `json:"transactionIndexInBlock"`
	Op          uint32              `json:"operationIndexInTransaction"`
	Strings     []attribute[string] `json:"stringAttributes"`
	Numbers     []attribute[uint64] `json:"numericAttributes"`
}

type attribute[T any] struct {
	Key   string `json:"key"`
	Value T      `json:"value"`
}

// parts returns the parts that the answer has.
func (f *found) parts() (parts store.Parts) {
	if f.Strings != nil {
		parts |= store.Attributes
	}
	if f.Payload != nil {
		parts |= store.Content
	}
	if f.ContentType != nil {
		parts |= store.Metadata
	}
	return parts
}

// entity converts an answer; omitted parts are zero.
func (f *found) entity() entity.Entity {
	e := entity.Entity{
		Sequence: entity.MakeSequence(f.Created, f.Tx, f.Op), LastModifiedAtBlock: f.Modified, Expiration: f.Expires,
		Owner: entity.Address(f.Owner), Creator: entity.Address(f.Creator),
		StringAttributes: map[string]string{}, NumericAttributes: map[string]uint64{},
	}
	for _, a := range f.Strings {
		e.StringAttributes[a.Key] = a.Value
	}
	for _, a := range f.Numbers {
		e.NumericAttributes[a.Key] = a.Value
	}
	if f.Key != nil {
		e.Key = entity.Key(*f.Key)
	}
	if f.Payload != nil {
		e.Content = *f.Payload
	}
	if f.ContentType != nil {
		e.ContentType = *f.ContentType
	}
	return e
}
