package rpc

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/varvedb/varve/store"
)

// criteria is which logs are asked for.
type criteria struct {
	from, to  *blockTag // nil: the head
	hash      *topic    // of the one block, instead of a range
	addresses []store.Address
	topics    [][]topic // by position, any of a list; an empty list: any at all
}

// The bounds of criteria. Logs have at most four topics.
const (
	maxAddresses = 100
	maxTopics    = 4
	maxAnyOf     = 1000
)

// UnmarshalJSON implements json.Unmarshaler.
func (c *criteria) UnmarshalJSON(text []byte) error {
	var raw struct {
		From      *blockTag         `json:"fromBlock"`
		To        *blockTag         `json:"toBlock"`
		Hash      *string           `json:"blockHash"`
		Addresses json.RawMessage   `json:"address"`
		Topics    []json.RawMessage `json:"topics"`
	}
	if err := json.Unmarshal(text, &raw); err != nil {
		return err
	}
	*c = criteria{from: raw.From, to: raw.To}
	if raw.Hash != nil {
		if raw.From != nil || raw.To != nil {
			return errors.New("give blockHash, or fromBlock and toBlock")
		}
		c.hash = new(topic)
		if err := parseHex(c.hash[:], *raw.Hash); err != nil {
			return fmt.Errorf("blockHash: %w", err)
		}
	}
	addresses, err := oneOrMore(raw.Addresses, maxAddresses)
	if err != nil {
		return fmt.Errorf("address: %w", err)
	}
	for _, text := range addresses {
		var a store.Address
		if err := parseHex(a[:], text); err != nil {
			return fmt.Errorf("address: %w", err)
		}
		c.addresses = append(c.addresses, a)
	}
	if len(raw.Topics) > maxTopics {
		return fmt.Errorf("%d topics, logs have at most %d", len(raw.Topics), maxTopics)
	}
	for _, position := range raw.Topics {
		anyOf, err := oneOrMore(position, maxAnyOf)
		if err != nil {
			return fmt.Errorf("topics: %w", err)
		}
		list := make([]topic, len(anyOf))
		for i, text := range anyOf {
			if err := parseHex(list[i][:], text); err != nil {
				return fmt.Errorf("topics: %w", err)
			}
		}
		c.topics = append(c.topics, list)
	}
	return nil
}

// oneOrMore reads null, a text or a list of texts.
func oneOrMore(text json.RawMessage, most int) ([]string, error) {
	text = bytes.TrimSpace(text)
	if len(text) == 0 || string(text) == "null" {
		return nil, nil
	}
	if text[0] != '[' {
		list := make([]string, 1)
		return list, json.Unmarshal(text, &list[0])
	}
	var list []*string
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, err
	}
	if len(list) > most {
		return nil, fmt.Errorf("a list of %d, at most %d are allowed", len(list), most)
	}
	var given []string
	for _, s := range list {
		if s == nil {
			return nil, nil // any
		}
		given = append(given, *s)
	}
	return given, nil
}

func parseHex(dst []byte, text string) error {
	if len(text) != 2+2*len(dst) || text[:2] != "0x" {
		return fmt.Errorf("%q: want 0x and %d hexadecimal digits", clip(text), 2*len(dst))
	}
	_, err := hex.Decode(dst, []byte(text[2:]))
	return err
}

// match tells whether a log of any block is asked for.
func (c *criteria) match(l *eventLog) bool {
	if len(c.addresses) > 0 && !slices.Contains(c.addresses, l.address) || len(c.topics) > len(l.topics) {
		return false
	}
	for i, anyOf := range c.topics {
		if len(anyOf) > 0 && !slices.Contains(anyOf, l.topics[i]) {
			return false
		}
	}
	return true
}

// within tells whether a block is in the range of a filter that is asked again and again:
// words for the head are no bound.
func (c *criteria) within(block uint64) bool {
	if from, ok := c.from.given(); ok && block < from {
		return false
	}
	to, ok := c.to.given()
	return !ok || block <= to
}

// last returns the last block whose number is given, zero for none.
func (c *criteria) last() uint64 {
	from, _ := c.from.given()
	to, _ := c.to.given()
	return max(from, to)
}

// bounds returns the range of blocks that is asked for of a store at a head.
func (c *criteria) bounds(head uint64) (from, to uint64) {
	from, to = head, head
	if c.from != nil {
		from = c.from.at(head)
	}
	if c.to != nil {
		to = c.to.at(head)
	}
	return from, to
}
