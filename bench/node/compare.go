package node

import (
	"bytes"
	"fmt"
	"maps"
	"strings"

	"github.com/varvedb/varve/store/entity"
)

// synthetic are the attributes that each entity has.
var synthetic = []string{
	entity.AttrKey, entity.AttrOwner, entity.AttrCreator, entity.AttrExpiration, entity.AttrCreatedAtBlock,
	entity.AttrLastModifiedAtBlock, entity.AttrSequence, entity.AttrTxIndex, entity.AttrOpIndex,
}

// differs tells how an entity that was answered differs from the right one, in the fields
// that were asked for, or "".
func (f *found) differs(want *entity.Entity, asked fields) string {
	due := asked &^ withSynthetic
	if asked&withSynthetic != 0 {
		due |= withAttributes // they come among these
	}
	if f.fields != due {
		return fmt.Sprintf("fields %b, want %b", f.fields, due)
	}
	for _, c := range []struct {
		of        fields
		name      string
		got, want any
	}{
		{withKey, "key", f.Key, want.Key},
		{withContentType, "content type", f.ContentType, want.ContentType},
		{withExpiration, "expiration", f.Expiration, want.Expiration},
		{withOwner, "owner", f.Owner, want.Owner},
		{withCreator, "creator", f.Creator, want.Creator},
		{withCreation, "block of creation", f.CreatedAtBlock(), want.CreatedAtBlock()},
		{withModification, "last block", f.LastModifiedAtBlock, want.LastModifiedAtBlock},
		{withTxIndex, "transaction", f.TxIndex(), want.TxIndex()},
		{withOpIndex, "operation", f.OpIndex(), want.OpIndex()},
	} {
		if asked&c.of != 0 && c.got != c.want {
			return fmt.Sprintf("%s %v, want %v", c.name, c.got, c.want)
		}
	}
	if asked&withPayload != 0 && !bytes.Equal(f.Content, want.Content) {
		return fmt.Sprintf("payload %x, want %x", f.Content, want.Content)
	}
	return f.attributesDiffer(want, asked)
}

func (f *found) attributesDiffer(want *entity.Entity, asked fields) string {
	if asked&(withAttributes|withSynthetic) == 0 {
		return ""
	}
	strs, numbers := map[string]string{}, map[string]uint64{}
	if asked&withAttributes != 0 {
		maps.Copy(strs, want.StringAttributes)
		maps.Copy(numbers, want.NumericAttributes)
	}
	if asked&withSynthetic != 0 {
		for _, name := range synthetic {
			if s, ok := want.StringAttribute(name); ok {
				strs[name] = strings.ToLower(s)
			}
			if n, ok := want.NumericAttribute(name); ok {
				numbers[name] = n
			}
		}
	}
	if !maps.Equal(f.StringAttributes, strs) || !maps.Equal(f.NumericAttributes, numbers) {
		return fmt.Sprintf("attributes %q %v, want %q %v", f.StringAttributes, f.NumericAttributes, strs, numbers)
	}
	return ""
}
