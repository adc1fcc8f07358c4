package rpc

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/varvedb/varve/node/chain"
)

// criteria is which logs are asked for.
type criteria struct {
	From      *blockTag            `json:"fromBlock"` // nil: the head
	To        *blockTag            `json:"toBlock"`
	Hash      *topic               `json:"blockHash"` // of the one block, instead of a range
	Addresses anyOf[chain.Address] `json:"address"`
	Topics    []anyOf[topic]       `json:"topics"` // by position
}

// The bounds of criteria. Logs have at most four topics.
const (
	maxTopics = 4
	maxAnyOf  = 1000
)

// UnmarshalJSON implements json.Unmarshaler.
func (c *criteria) UnmarshalJSON(text []byte) error {
	type plain criteria
	if err := json.Unmarshal(text, (*plain)(c)); err != nil {
		return err
	}
	switch {
	case c.Hash != nil && (c.From != nil || c.To != nil):
		return errors.New("give blockHash, or fromBlock and toBlock")
	case len(c.Topics) > maxTopics:
		return fmt.Errorf("%d topics, logs have at most %d", len(c.Topics), maxTopics)
	}
	return nil
}

// anyOf is the values of which a log has one; without any, it may have all that there are. In
// JSON it is a value or a list, and null, or a null in the list, is no value.
type anyOf[T any] []T

// UnmarshalJSON implements json.Unmarshaler.
func (a *anyOf[T]) UnmarshalJSON(text []byte) error {
	if text[0] != '[' {
		text = slices.Concat([]byte("["), text, []byte("]"))
	}
	var list []*T
	if err := json.Unmarshal(text, &list); err != nil {
		return err
	}
	if len(list) > maxAnyOf {
		return fmt.Errorf("a list of %d, at most %d are allowed", len(list), maxAnyOf)
	}
	*a = nil
	if slices.Contains(list, nil) {
		return nil
	}
	for _, value := range list {
		*a = append(*a, *value)
	}
	return nil
}

// match tells whether a log of any block is asked for.
func (c *criteria) match(l *Log) bool {
	if len(c.Addresses) > 0 && !slices.Contains(c.Addresses, l.Address) || len(c.Topics) > len(l.Topics) {
		return false
	}
	for i, anyOf := range c.Topics {
		if len(anyOf) > 0 && !slices.Contains(anyOf, l.Topics[i]) {
			return false
		}
	}
	return true
}

// within tells whether a block is in the range of a filter that is asked again and again:
// words for the head are no bound.
func (c *criteria) within(block uint64) bool {
	if from, ok := c.From.given(); ok && block < from {
		return false
	}
	to, ok := c.To.given()
	return !ok || block <= to
}

// last returns the last block whose number is given, zero for none.
func (c *criteria) last() uint64 {
	from, _ := c.From.given()
	to, _ := c.To.given()
	return max(from, to)
}
