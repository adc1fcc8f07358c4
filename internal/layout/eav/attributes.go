package eav

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
)

// syntheticStrings are the synthetic string attributes, which are stored like
// the user's. They sort before those, since no user's name begins with "$".
func syntheticStrings(e *entity.Entity) [3]struct{ name, value string } {
	return [3]struct{ name, value string }{
		{entity.AttrCreator, e.Creator.String()},
		{entity.AttrKey, e.Key.String()},
		{entity.AttrOwner, e.Owner.String()},
	}
}

// syntheticNumbers are the synthetic numeric attributes that are stored.
// $lastModifiedAtBlock is not: it is the version's first block.
func syntheticNumbers(e *entity.Entity) [5]struct {
	name  string
	value uint64
} {
	return [5]struct {
		name  string
		value uint64
	}{
		{entity.AttrCreatedAtBlock, e.CreatedAtBlock()},
		{entity.AttrExpiration, e.Expiration},
		{entity.AttrOpIndex, e.OpIndex()},
		{entity.AttrSequence, e.Sequence},
		{entity.AttrTxIndex, e.TxIndex()},
	}
}

// encodeAttributes returns the two JSON objects of a payload row, as Arkiv's
// store writes them: all attributes, the synthetic ones included.
func encodeAttributes(e *entity.Entity) (texts, numbers string) {
	buf := make([]byte, 1, 512)
	buf[0] = '{'
	for _, a := range syntheticStrings(e) {
		buf = appendString(appendName(buf, a.name), a.value)
	}
	for _, name := range slices.Sorted(maps.Keys(e.StringAttributes)) {
		buf = appendString(appendName(buf, name), e.StringAttributes[name])
	}
	texts = string(append(buf, '}'))
	buf = buf[:1]
	for _, a := range syntheticNumbers(e) {
		buf = strconv.AppendUint(appendName(buf, a.name), a.value, 10)
	}
	for _, name := range slices.Sorted(maps.Keys(e.NumericAttributes)) {
		buf = strconv.AppendUint(appendName(buf, name), e.NumericAttributes[name], 10)
	}
	return texts, string(append(buf, '}'))
}

// decodeAttributes sets the fields of e that the two JSON objects hold.
func decodeAttributes(e *entity.Entity, texts, numbers []byte) error {
	e.StringAttributes = map[string]string{}
	e.NumericAttributes = map[string]uint64{}
	found := 0
	err := eachString(texts, func(name, value string) (err error) {
		switch {
		case name == entity.AttrCreator:
			found++
			e.Creator, err = entity.ParseAddress(value)
		case name == entity.AttrOwner:
			found++
			e.Owner, err = entity.ParseAddress(value)
		case name == entity.AttrKey:
		default:
			e.StringAttributes[name] = value
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("string attributes of %s: %w", e.Key, err)
	}
	err = eachNumber(numbers, func(name string, value uint64) error {
		switch name {
		case entity.AttrSequence:
			found++
			e.Sequence = value
		case entity.AttrExpiration:
			found++
			e.Expiration = value
		case entity.AttrCreatedAtBlock, entity.AttrTxIndex, entity.AttrOpIndex: // parts of the sequence
		default:
			e.NumericAttributes[name] = value
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("numeric attributes of %s: %w", e.Key, err)
	}
	if found != 4 {
		return fmt.Errorf("attributes of %s lack owner, creator, sequence or expiration", e.Key)
	}
	return nil
}

// decodeEnd reads the expiration out of the JSON of numeric attributes, and whether
// the version is a trace.
func decodeEnd(numbers []byte) (expiration uint64, trace bool, err error) {
	found := false
	err = eachNumber(numbers, func(name string, value uint64) error {
		switch name {
		case entity.AttrExpiration:
			expiration, found = value, true
		case entity.AttrEnded:
			trace = true
		}
		return nil
	})
	if err == nil && !found {
		err = fmt.Errorf("numeric attributes %q have no expiration", numbers)
	}
	if err != nil {
		return 0, false, fmt.Errorf("%w: %w", driver.ErrCorrupt, err)
	}
	return expiration, trace, nil
}
