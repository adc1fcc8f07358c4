package node

import (
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
)

// fields are those of an entity that are asked for and answered.
type fields uint8

const (
	withKey fields = 1 << iota
	withAttributes
	withPayload
	withOthers
	withAll = withOthers<<1 - 1
)

// included says of each set of fields which options of a request they are.
var included = func() (list [withAll + 1]map[string]bool) {
	for f := range fields(len(list)) {
		others := f&withOthers != 0
		list[f] = map[string]bool{
			"key": f&withKey != 0, "attributes": f&withAttributes != 0, "syntheticAttributes": false, "payload": f&withPayload != 0,
			"contentType": others, "expiration": others, "owner": others, "creator": others, "createdAtBlock": others,
			"lastModifiedAtBlock": others, "transactionIndexInBlock": others, "operationIndexInTransaction": others,
		}
	}
	return list
}()

// question is an arkiv_query.
type question struct {
	text   string
	at     uint64 // store.Head for none
	fields fields
	limit  int // 0 for none
	cursor string
}

func (q *question) params() []any {
	options := map[string]any{"includeData": included[q.fields]}
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

// request is a call. Those on a connection come one after another, so all have one number.
func request(method string, params []any) ([]byte, error) {
	return json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

// result reads an answer that has a result and nothing else.
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
	Found  []found  `json:"data"`
	Block  quantity `json:"blockNumber"`
	Cursor string   `json:"cursor"`
}

// timing is an answer to arkiv_getBlockTiming.
type timing struct {
	Block    uint64 `json:"current_block"`
	Time     uint64 `json:"current_block_time"`
	Duration uint64 `json:"duration"`
}

// found is an entity, as far as it was answered.
type found struct {
	Key         string              `json:"key"`
	Payload     *payload            `json:"value"`
	ContentType *string             `json:"contentType"`
	Owner       string              `json:"owner"`
	Creator     string              `json:"creator"`
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

// fields are those that were answered.
func (f *found) fields() (of fields) {
	add := func(field fields, answered bool) {
		if answered {
			of |= field
		}
	}
	add(withKey, f.Key != "")
	add(withAttributes, f.Strings != nil)
	add(withPayload, f.Payload != nil)
	add(withOthers, f.ContentType != nil)
	return of
}

// entity is what was answered of one; what was not is zero.
func (f *found) entity() (e entity.Entity, err error) {
	e = entity.Entity{
		Sequence: entity.MakeSequence(f.Created, f.Tx, f.Op), LastModifiedAtBlock: f.Modified, Expiration: f.Expires,
		StringAttributes: map[string]string{}, NumericAttributes: map[string]uint64{},
	}
	for _, a := range f.Strings {
		e.StringAttributes[a.Key] = a.Value
	}
	for _, a := range f.Numbers {
		e.NumericAttributes[a.Key] = a.Value
	}
	if f.Payload != nil {
		e.Content = *f.Payload
	}
	var errs [3]error
	e.Key, errs[0] = entity.ParseKey(f.Key)
	if f.ContentType != nil {
		e.ContentType = *f.ContentType
		e.Owner, errs[1] = entity.ParseAddress(f.Owner)
		e.Creator, errs[2] = entity.ParseAddress(f.Creator)
	}
	return e, errors.Join(errs[:]...)
}

// payload is written as 0x and digits.
type payload []byte

// UnmarshalText implements encoding.TextUnmarshaler.
func (p *payload) UnmarshalText(text []byte) (err error) {
	if len(text) < 2 || string(text[:2]) != "0x" {
		return fmt.Errorf("%.80q: want 0x and digits", text)
	}
	*p, err = hex.AppendDecode(slices.Grow(*p, len(text)/2), text[2:])
	return err
}

// quantity is a number as 0x and digits.
type quantity uint64

// UnmarshalText implements encoding.TextUnmarshaler.
func (q *quantity) UnmarshalText(text []byte) error {
	digits, ok := strings.CutPrefix(string(text), "0x")
	n, err := strconv.ParseUint(digits, 16, 64)
	if !ok || err != nil {
		return fmt.Errorf("%.80q: want 0x and a number", text)
	}
	*q = quantity(n)
	return nil
}
