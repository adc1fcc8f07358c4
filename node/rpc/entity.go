package rpc

import (
	"maps"
	"slices"
	"strconv"

	"github.com/varvedb/varve/internal/jsonuint"
	"github.com/varvedb/varve/store/entity"
)

// include selects the fields of entities in an answer.
type include struct {
	Key               bool `json:"key"`
	Attributes        bool `json:"attributes"`
	Synthetic         bool `json:"syntheticAttributes"`
	Payload           bool `json:"payload"`
	ContentType       bool `json:"contentType"`
	Expiration        bool `json:"expiration"`
	Owner             bool `json:"owner"`
	Creator           bool `json:"creator"`
	CreatedAtBlock    bool `json:"createdAtBlock"`
	LastModifiedBlock bool `json:"lastModifiedAtBlock"`
	TxIndex           bool `json:"transactionIndexInBlock"`
	OpIndex           bool `json:"operationIndexInTransaction"`
}

// usual selects the parts of an entity that are returned by default.
var usual = include{Key: true, ContentType: true, Payload: true, Owner: true, Attributes: true, Expiration: true}

// appendEntity appends an entity with the requested fields. It is hand-written
// because encoding is a large part of the cost of an answer.
func appendEntity(b []byte, e *entity.Entity, in *include) []byte {
	b = append(b, '{')
	open := len(b)
	data := func(asked bool, name string, value []byte) {
		if asked {
			b = append(jsonuint.AppendHex(append(b, name...), value), '"', ',')
		}
	}
	number := func(asked bool, name string, n uint64) {
		if asked {
			b = append(strconv.AppendUint(append(b, name...), n, 10), ',')
		}
	}
	data(in.Key, `"key":"`, e.Key[:])
	data(in.Payload, `"value":"`, e.Content)
	if in.ContentType {
		b = append(jsonuint.AppendText(append(b, `"contentType":`...), e.ContentType), ',')
	}
	data(in.Owner, `"owner":"`, e.Owner[:])
	data(in.Creator, `"creator":"`, e.Creator[:])
	number(in.Expiration, `"expiresAt":`, e.Expiration)
	number(in.CreatedAtBlock, `"createdAtBlock":`, e.CreatedAtBlock())
	number(in.LastModifiedBlock, `"lastModifiedAtBlock":`, e.LastModifiedAtBlock)
	number(in.TxIndex, `"transactionIndexInBlock":`, e.TxIndex())
	number(in.OpIndex, `"operationIndexInTransaction":`, e.OpIndex())
	if in.Attributes || in.Synthetic {
		b = appendAttributes(b, e, in)
	}
	return append(withoutComma(b, open), '}')
}

var (
	syntheticTexts   = []string{entity.AttrKey, entity.AttrOwner, entity.AttrCreator}
	syntheticNumbers = []string{
		entity.AttrExpiration, entity.AttrCreatedAtBlock, entity.AttrLastModifiedAtBlock,
		entity.AttrSequence, entity.AttrTxIndex, entity.AttrOpIndex,
	}
)

// appendAttributes appends the user's attributes by name, after the synthetic
// ones.
func appendAttributes(b []byte, e *entity.Entity, in *include) []byte {
	var space [16]string
	b = append(b, `"stringAttributes":[`...)
	open := len(b)
	if in.Synthetic {
		for _, name := range syntheticTexts {
			value, _ := e.StringAttribute(name)
			b = appendStringAttribute(b, name, value)
		}
	}
	if in.Attributes {
		for _, name := range sortedNames(space[:0], e.StringAttributes) {
			b = appendStringAttribute(b, name, e.StringAttributes[name])
		}
	}
	b = append(withoutComma(b, open), `],"numericAttributes":[`...)
	open = len(b)
	if in.Synthetic {
		for _, name := range syntheticNumbers {
			value, _ := e.NumericAttribute(name)
			b = appendNumericAttribute(b, name, value)
		}
	}
	if in.Attributes {
		for _, name := range sortedNames(space[:0], e.NumericAttributes) {
			b = appendNumericAttribute(b, name, e.NumericAttributes[name])
		}
	}
	return append(withoutComma(b, open), ']', ',')
}

func sortedNames[V any](space []string, attributes map[string]V) []string {
	names := slices.AppendSeq(space, maps.Keys(attributes))
	slices.Sort(names)
	return names
}

func appendStringAttribute(b []byte, name, value string) []byte {
	b = jsonuint.AppendText(append(b, `{"key":`...), name)
	b = jsonuint.AppendText(append(b, `,"value":`...), value)
	return append(b, '}', ',')
}

func appendNumericAttribute(b []byte, name string, value uint64) []byte {
	b = jsonuint.AppendText(append(b, `{"key":`...), name)
	b = strconv.AppendUint(append(b, `,"value":`...), value, 10)
	return append(b, '}', ',')
}

// withoutComma removes the comma after the last member of the list that began
// at open.
func withoutComma(b []byte, open int) []byte {
	if len(b) > open {
		return b[:len(b)-1]
	}
	return b
}
