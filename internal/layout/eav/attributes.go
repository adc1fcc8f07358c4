package eav

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
)

// synthetics of an entity that are stored as attributes. $lastModifiedAtBlock
// is not among them: it is the version's from_block.
func syntheticStrings(e *entity.Entity) [3]struct{ name, value string } {
	return [3]struct{ name, value string }{
		{entity.AttrCreator, e.Creator.String()},
		{entity.AttrKey, e.Key.String()},
		{entity.AttrOwner, e.Owner.String()},
	}
}

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
// store writes them: all attributes, the synthetic ones included, names sorted.
func encodeAttributes(e *entity.Entity) (texts, numbers string, err error) {
	all := make(map[string]string, len(e.StringAttributes)+3)
	for name, value := range e.StringAttributes {
		all[name] = value
	}
	for _, a := range syntheticStrings(e) {
		all[a.name] = a.value
	}
	nums := make(map[string]uint64, len(e.NumericAttributes)+5)
	for name, value := range e.NumericAttributes {
		nums[name] = value
	}
	for _, a := range syntheticNumbers(e) {
		nums[a.name] = a.value
	}
	t, err := json.Marshal(all)
	if err != nil {
		return "", "", err
	}
	n, err := json.Marshal(nums)
	return string(t), string(n), err
}

// decodeAttributes sets the fields of e that the two JSON objects hold.
func decodeAttributes(e *entity.Entity, texts, numbers []byte) error {
	if err := json.Unmarshal(texts, &e.StringAttributes); err != nil {
		return fmt.Errorf("string attributes of %s: %w", e.Key, err)
	}
	if err := json.Unmarshal(numbers, &e.NumericAttributes); err != nil {
		return fmt.Errorf("numeric attributes of %s: %w", e.Key, err)
	}
	var err error
	if e.Creator, err = entity.ParseAddress(e.StringAttributes[entity.AttrCreator]); err != nil {
		return fmt.Errorf("creator of %s: %w", e.Key, err)
	}
	if e.Owner, err = entity.ParseAddress(e.StringAttributes[entity.AttrOwner]); err != nil {
		return fmt.Errorf("owner of %s: %w", e.Key, err)
	}
	e.Sequence = e.NumericAttributes[entity.AttrSequence]
	e.Expiration = e.NumericAttributes[entity.AttrExpiration]
	for name := range e.StringAttributes {
		if strings.HasPrefix(name, "$") {
			delete(e.StringAttributes, name)
		}
	}
	for name := range e.NumericAttributes {
		if strings.HasPrefix(name, "$") {
			delete(e.NumericAttributes, name)
		}
	}
	return nil
}

// decodeExpiration reads the expiration out of the JSON of numeric attributes.
func decodeExpiration(numbers []byte) (uint64, error) {
	var n struct {
		Expiration *uint64 `json:"$expiration"`
	}
	if err := json.Unmarshal(numbers, &n); err != nil {
		return 0, fmt.Errorf("%w: numeric attributes %q: %w", driver.ErrCorrupt, numbers, err)
	}
	if n.Expiration == nil {
		return 0, fmt.Errorf("%w: numeric attributes %q have no expiration", driver.ErrCorrupt, numbers)
	}
	return *n.Expiration, nil
}
