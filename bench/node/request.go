package node

import (
	"encoding/hex"
	"encoding/json"
	"strconv"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
)

// fields are those of an entity that are asked for and answered.
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

// answerHead is what each answer begins with: calls on a connection come one after another.
const answerHead = `{"jsonrpc":"2.0","id":1,"result":`

// appendCall adds a call whose parameters are JSON.
func appendCall(b []byte, method string, params []byte) []byte {
	b = append(append(b, `{"jsonrpc":"2.0","id":1,"method":"`...), method...)
	return append(append(append(b, `","params":[`...), params...), "]}"...)
}

// appendQuery adds the parameters of a query.
func appendQuery(b []byte, q *question) []byte {
	b = appendText(b, q.text)
	b = append(b, `,{"includeData":{`...)
	for i, name := range options {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, '"'), name...), `":`...)
		b = strconv.AppendBool(b, q.fields&(1<<i) != 0)
	}
	b = append(b, '}')
	if q.at != store.Head {
		b = appendQuantity(append(b, `,"atBlock":`...), q.at)
	}
	if q.limit > 0 {
		b = appendQuantity(append(b, `,"resultsPerPage":`...), uint64(q.limit))
	}
	if len(q.order) > 0 {
		b = append(b, `,"orderBy":[`...)
		for i, by := range q.order {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendOrder(b, by)
		}
		b = append(b, ']')
	}
	if q.cursor != "" {
		b = appendText(append(b, `,"cursor":`...), q.cursor)
	}
	return append(b, '}')
}

func appendOrder(b []byte, by store.Order) []byte {
	kind := "string"
	if by.Kind == entity.Numeric {
		kind = "numeric"
	}
	b = appendText(append(b, `{"name":`...), by.Name)
	b = append(append(append(b, `,"type":"`...), kind...), `","desc":`...)
	return append(strconv.AppendBool(b, by.Desc), '}')
}

// appendLogs adds the parameter of eth_getLogs for the events of an address.
func appendLogs(b []byte, from, to uint64, address []byte, events []entity.Hash) []byte {
	b = appendQuantity(append(b, `{"fromBlock":`...), from)
	b = appendQuantity(append(b, `,"toBlock":`...), to)
	b = append(hex.AppendEncode(append(b, `,"address":"0x`...), address), `","topics":[[`...)
	for i := range events {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(hex.AppendEncode(append(b, `"0x`...), events[i][:]), '"')
	}
	return append(b, "]]}"...)
}

func appendQuantity(b []byte, n uint64) []byte {
	return append(strconv.AppendUint(append(b, `"0x`...), n, 16), '"')
}

func appendText(b []byte, s string) []byte {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // a string can always be marshalled
	}
	return append(b, text...)
}
