package node

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/varvedb/varve/store"
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

// options are their names in a request.
var options = [...]struct {
	of   fields
	name string
}{
	{withKey, "key"}, {withAttributes, "attributes"}, {0, "syntheticAttributes"}, {withPayload, "payload"}, {withOthers, "contentType"},
	{withOthers, "expiration"}, {withOthers, "owner"}, {withOthers, "creator"}, {withOthers, "createdAtBlock"},
	{withOthers, "lastModifiedAtBlock"}, {withOthers, "transactionIndexInBlock"}, {withOthers, "operationIndexInTransaction"},
}

// included are the options of a request, by the fields that are asked for.
var included = func() (list [withAll + 1]string) {
	for f := range list {
		var include []string
		for _, o := range options {
			include = append(include, fmt.Sprintf(`"%s":%t`, o.name, fields(f)&o.of != 0))
		}
		list[f] = strings.Join(include, ",")
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

// answerHead is what each answer begins with: calls on a connection come one after another.
const answerHead = `{"jsonrpc":"2.0","id":1,"result":`

// appendCall adds a call whose parameters are JSON.
func appendCall(b []byte, method string, params []byte) []byte {
	return fmt.Appendf(b, `{"jsonrpc":"2.0","id":1,"method":"%s","params":[%s]}`, method, params)
}

// appendQuery adds the parameters of a query.
func appendQuery(b []byte, q *question) []byte {
	b = fmt.Appendf(b, `%s,{"includeData":{%s}`, quoted(q.text), included[q.fields])
	if q.at != store.Head {
		b = fmt.Appendf(b, `,"atBlock":"%#x"`, q.at)
	}
	if q.limit > 0 {
		b = fmt.Appendf(b, `,"resultsPerPage":"%#x"`, q.limit)
	}
	if q.cursor != "" {
		b = fmt.Appendf(b, `,"cursor":%s`, quoted(q.cursor))
	}
	return append(b, '}')
}

func quoted(s string) []byte {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // a string can always be marshalled
	}
	return text
}
