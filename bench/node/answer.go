package node

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/varvedb/varve/node/chain"
	"github.com/varvedb/varve/store/entity"
)

// decode reads the result of an answer. Whatever else is in it is a fault.
func decode(answer []byte, result any) error {
	from := json.NewDecoder(bytes.NewReader(answer))
	from.DisallowUnknownFields()
	a := struct {
		JSONRPC string
		ID      int
		Result  any
	}{Result: result}
	if err := from.Decode(&a); err != nil {
		return fmt.Errorf("%w: %.200q", err, answer)
	}
	if a.JSONRPC != "2.0" || a.ID != 1 || a.Result == nil || from.InputOffset() != int64(len(answer)) {
		return fmt.Errorf("no answer: %.200q", answer)
	}
	return nil
}

// page is an answer to a query.
type page struct {
	Data        []shown
	BlockNumber chain.Quantity
	Cursor      string
}

// shown is an entity as far as it was answered. Its fields are called as in answers.
type shown struct {
	Key                         *entity.Hash
	Value                       *chain.Data
	ContentType                 *string
	Owner, Creator              *chain.Address
	ExpiresAt                   *uint64
	CreatedAtBlock              *uint64
	LastModifiedAtBlock         *uint64
	TransactionIndexInBlock     *uint64
	OperationIndexInTransaction *uint64
	StringAttributes            []attribute[string] // synthetic ones come first
	NumericAttributes           []attribute[uint64]
}

type attribute[V any] struct {
	Key   string
	Value V
}

// The synthetic attributes, which each entity has.
var (
	syntheticTexts   = []string{entity.AttrKey, entity.AttrOwner, entity.AttrCreator}
	syntheticNumbers = []string{
		entity.AttrExpiration, entity.AttrCreatedAtBlock, entity.AttrLastModifiedAtBlock,
		entity.AttrSequence, entity.AttrTxIndex, entity.AttrOpIndex,
	}
)

// show returns the fields of an entity that are asked for.
func show(e *entity.Entity, asked fields) shown {
	return shown{
		Key:         only(asked, withKey, entity.Hash(e.Key)),
		Value:       only(asked, withPayload, append(chain.Data{}, e.Content...)),
		ContentType: only(asked, withContentType, e.ContentType),
		Owner:       only(asked, withOwner, chain.Address(e.Owner)), Creator: only(asked, withCreator, chain.Address(e.Creator)),
		ExpiresAt:      only(asked, withExpiration, e.Expiration),
		CreatedAtBlock: only(asked, withCreation, e.CreatedAtBlock()), LastModifiedAtBlock: only(asked, withModification, e.LastModifiedAtBlock),
		TransactionIndexInBlock: only(asked, withTxIndex, e.TxIndex()), OperationIndexInTransaction: only(asked, withOpIndex, e.OpIndex()),
		StringAttributes:  attributes(asked, syntheticTexts, e.StringAttribute, e.StringAttributes),
		NumericAttributes: attributes(asked, syntheticNumbers, e.NumericAttribute, e.NumericAttributes),
	}
}

func only[V any](asked, field fields, v V) *V {
	if asked&field == 0 {
		return nil
	}
	return &v
}

func attributes[V any](asked fields, synthetic []string, value func(string) (V, bool), own map[string]V) (list []attribute[V]) {
	if asked&(withSynthetic|withAttributes) != 0 {
		list = []attribute[V]{}
	}
	if asked&withSynthetic != 0 {
		for _, name := range synthetic {
			v, _ := value(name)
			list = append(list, attribute[V]{name, v})
		}
	}
	if asked&withAttributes != 0 {
		for _, name := range slices.Sorted(maps.Keys(own)) {
			list = append(list, attribute[V]{name, own[name]})
		}
	}
	return list
}

// fields returns those that were answered; synthetic attributes are among the others.
func (s *shown) fields() (has fields) {
	for i, there := range [...]bool{
		s.Key != nil, s.StringAttributes != nil && s.NumericAttributes != nil, false, s.Value != nil, s.ContentType != nil, s.ExpiresAt != nil, s.Owner != nil, s.Creator != nil,
		s.CreatedAtBlock != nil, s.LastModifiedAtBlock != nil, s.TransactionIndexInBlock != nil, s.OperationIndexInTransaction != nil,
	} {
		if there {
			has |= 1 << i
		}
	}
	return has
}

// entity returns what was answered, without synthetic attributes; the rest of it is empty.
func (s *shown) entity() *entity.Entity {
	return &entity.Entity{
		Key: entity.Key(value(s.Key)), Content: value(s.Value), ContentType: value(s.ContentType),
		Owner: entity.Address(value(s.Owner)), Creator: entity.Address(value(s.Creator)),
		Sequence:   entity.MakeSequence(value(s.CreatedAtBlock), uint32(value(s.TransactionIndexInBlock)), uint32(value(s.OperationIndexInTransaction))),
		Expiration: value(s.ExpiresAt), LastModifiedAtBlock: value(s.LastModifiedAtBlock),
		StringAttributes: byName(s.StringAttributes), NumericAttributes: byName(s.NumericAttributes),
	}
}

func value[V any](p *V) (v V) {
	if p != nil {
		v = *p
	}
	return v
}

func byName[V any](list []attribute[V]) map[string]V {
	values := make(map[string]V, len(list))
	for _, a := range list {
		values[a.Key] = a.Value
	}
	return values
}

// same fails where an entity that was answered is not the right one with the fields that were
// asked for.
func (s *shown) same(want *entity.Entity, asked fields) error {
	due := show(want, asked)
	if reflect.DeepEqual(*s, due) {
		return nil
	}
	got, err := json.Marshal(s)
	if err != nil {
		return err
	}
	text, err := json.Marshal(due)
	if err != nil {
		return err
	}
	return fmt.Errorf("entity %s, want %s", got, text)
}
