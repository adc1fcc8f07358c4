package rest

import (
	"encoding/base64"

	"github.com/varvedb/varve/internal/jsonuint"
	"github.com/varvedb/varve/store/entity"
)

// appendEntity appends an entity as JSON, as in the schema Entity. It is
// hand-written because encoding is most of the cost of an answer from the
// cache.
func appendEntity(b []byte, e *entity.Entity) []byte {
	b = append(b, `{"key":"`...)
	b = jsonuint.AppendHex(b, e.Key[:])
	b = append(b, `","owner":"`...)
	b = jsonuint.AppendHex(b, e.Owner[:])
	b = append(b, `","creator":"`...)
	b = jsonuint.AppendHex(b, e.Creator[:])
	b = append(b, `","content_type":`...)
	b = jsonuint.AppendText(b, e.ContentType)
	b = append(b, `,"payload":"`...)
	b = base64.StdEncoding.AppendEncode(b, e.Content)
	b = append(b, `","string_attributes":{`...)
	comma := false
	for name, value := range e.StringAttributes {
		b = appendName(b, &comma, name)
		b = jsonuint.AppendText(b, value)
	}
	b = append(b, `},"numeric_attributes":{`...)
	comma = false
	for name, value := range e.NumericAttributes {
		b = appendName(b, &comma, name)
		b = jsonuint.Append(b, value)
	}
	b = append(b, `},"sequence":`...)
	b = jsonuint.Append(b, e.Sequence)
	b = append(b, `,"created_at_block":`...)
	b = jsonuint.Append(b, e.CreatedAtBlock())
	b = append(b, `,"last_modified_at_block":`...)
	b = jsonuint.Append(b, e.LastModifiedAtBlock)
	b = append(b, `,"expiration":`...)
	b = jsonuint.AppendExpiration(b, e.Expiration)
	return append(b, '}')
}

// appendName appends the name of a member, with a comma unless it is the first.
func appendName(b []byte, comma *bool, name string) []byte {
	if *comma {
		b = append(b, ',')
	}
	*comma = true
	return append(jsonuint.AppendText(b, name), ':')
}
