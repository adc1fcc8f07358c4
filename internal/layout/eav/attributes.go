package eav

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
)

// named is an attribute of a version.
type named[T any] struct {
	name  string
	value T
}

// textsOf returns the stored string attributes of a version.
func textsOf(e *entity.Entity) []named[string] {
	return sorted(e.StringAttributes,
		named[string]{entity.AttrCreator, e.Creator.String()},
		named[string]{entity.AttrKey, e.Key.String()},
		named[string]{entity.AttrOwner, e.Owner.String()},
	)
}

// numbersOf returns the stored numeric attributes of a version.
// $lastModifiedAtBlock is not stored as an attribute, because it is the
// version's first block.
func numbersOf(e *entity.Entity) []named[uint64] {
	return sorted(e.NumericAttributes,
		named[uint64]{entity.AttrCreatedAtBlock, e.CreatedAtBlock()},
		named[uint64]{entity.AttrExpiration, e.Expiration},
		named[uint64]{entity.AttrOpIndex, e.OpIndex()},
		named[uint64]{entity.AttrSequence, e.Sequence},
		named[uint64]{entity.AttrTxIndex, e.TxIndex()},
	)
}

// sorted returns all attributes in order: the synthetic ones first, since no
// user attribute begins with "$".
func sorted[T any](users map[string]T, synthetic ...named[T]) []named[T] {
	list := append(make([]named[T], 0, len(synthetic)+len(users)), synthetic...)
	for name, value := range users {
		list = append(list, named[T]{name, value})
	}
	slices.SortFunc(list[len(synthetic):], func(a, b named[T]) int { return strings.Compare(a.name, b.name) })
	return list
}

// encodeAttributes returns the two JSON objects of a payload row, as Arkiv's
// store writes them.
func encodeAttributes(texts []named[string], numbers []named[uint64]) (string, string) {
	buf := make([]byte, 1, 512)
	buf[0] = '{'
	for _, a := range texts {
		buf = appendString(appendName(buf, a.name), a.value)
	}
	first := string(append(buf, '}'))
	buf = buf[:1]
	for _, a := range numbers {
		buf = strconv.AppendUint(appendName(buf, a.name), a.value, 10)
	}
	return first, string(append(buf, '}'))
}

// decodeAttributes sets the fields of e from the two JSON objects.
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

// decodeEnd reads the expiration from the JSON of numeric attributes, and
// whether the version was never visible (entity.Entity.Trace).
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
