package rpc

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/varvedb/varve/node/chain"
)

// criteria selects logs by block range, address and topics.
type criteria struct {
	From      *blockTag            `json:"fromBlock"` // nil: the head
	To        *blockTag            `json:"toBlock"`
	Hash      *topic               `json:"blockHash"` // of the one block, instead of a range
	Addresses anyOf[chain.Address] `json:"address"`
	Topics    topics               `json:"topics"`
}

// topics are the accepted topics of a log, by position.
type topics []anyOf[topic]

// UnmarshalJSON implements json.Unmarshaler.
func (t *topics) UnmarshalJSON(text []byte) (err error) {
	*t, err = readList[anyOf[topic]](text, maxTopics)
	return err
}

// The limits of criteria. Logs have at most four topics.
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
	if c.Hash != nil && (c.From != nil || c.To != nil) {
		return errors.New("give blockHash, or fromBlock and toBlock")
	}
	return nil
}

// anyOf is a list of accepted values: a log must have one of them; an empty
// list accepts all. In JSON it is a value or a list. Null, also within a list,
// accepts all.
type anyOf[T any] []T

// UnmarshalJSON implements json.Unmarshaler.
func (a *anyOf[T]) UnmarshalJSON(text []byte) error {
	list := []json.RawMessage{text}
	if text[0] == '[' {
		var err error
		list, err = elements(text, maxAnyOf)
		if errors.Is(err, errTooMany) {
			return fmt.Errorf("a list of more than %d", maxAnyOf)
		}
		if err != nil {
			return err
		}
	}
	*a = nil
	if slices.ContainsFunc(list, func(text json.RawMessage) bool { return string(text) == "null" }) {
		return nil
	}
	values := make([]T, len(list))
	for i, text := range list {
		if err := json.Unmarshal(text, &values[i]); err != nil {
			return err
		}
	}
	*a = values
	return nil
}

// bytes returns the memory that the criteria take.
func (c *criteria) bytes() int64 {
	n := len(c.Addresses) * len(chain.Address{})
	for _, list := range c.Topics {
		n += len(list) * len(topic{})
	}
	return int64(n)
}

// match reports whether the criteria select a log, regardless of its block.
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

// within reports whether a block is in the range of a polled filter. Names for
// the head are no bound.
func (c *criteria) within(block uint64) bool {
	if from, ok := c.From.given(); ok && block < from {
		return false
	}
	to, ok := c.To.given()
	return !ok || block <= to
}

// last returns the last block, if it was given as a number; otherwise zero.
func (c *criteria) last() uint64 {
	from, _ := c.From.given()
	to, _ := c.To.given()
	return max(from, to)
}
