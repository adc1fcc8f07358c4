package rest

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"unicode/utf8"

	"github.com/varvedb/varve/internal/jsonuint"
	"github.com/varvedb/varve/store"
)

// appendEntity adds an entity as JSON, as the schema Entity has it. It is written
// by hand because it is most of what an answer from the cache costs.
func appendEntity(b []byte, e *store.Entity) []byte {
	b = append(b, `{"key":"`...)
	b = appendHex(b, e.Key[:])
	b = append(b, `","owner":"`...)
	b = appendHex(b, e.Owner[:])
	b = append(b, `","creator":"`...)
	b = appendHex(b, e.Creator[:])
	b = append(b, `","content_type":`...)
	b = appendText(b, e.ContentType)
	b = append(b, `,"payload":"`...)
	b = base64.StdEncoding.AppendEncode(b, e.Content)
	b = append(b, `","string_attributes":{`...)
	comma := false
	for name, value := range e.StringAttributes {
		b = appendName(b, &comma, name)
		b = appendText(b, value)
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

// appendHex adds bytes as they are written in keys and addresses.
func appendHex(b, data []byte) []byte {
	return hex.AppendEncode(append(b, "0x"...), data)
}

// appendName adds the name of a member, with a comma unless it is the first.
func appendName(b []byte, comma *bool, name string) []byte {
	if *comma {
		b = append(b, ',')
	}
	*comma = true
	return append(appendText(b, name), ':')
}

// appendText adds a string. Most need no escapes; the others go the long way.
func appendText(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			text, err := json.Marshal(s)
			if err != nil {
				text = []byte(`""`) // a string can always be marshalled
			}
			return append(b, text...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}
