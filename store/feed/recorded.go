package feed

import (
	"bytes"
	"fmt"
	"os"

	"github.com/varvedb/varve/store/entity"
)

// RecordedQuery is a query with its right answer.
type RecordedQuery struct {
	Query       string
	AtBlock     uint64
	Keys        []entity.Key // of the entities that match, sorted
	ArkivAgrees bool         // Arkiv's own store gives this answer
}

// RecordedQueries reads the queries recorded beside a block tar, one JSON
// object a line. It holds all of them, being meant for tests.
func RecordedQueries(path string) ([]RecordedQuery, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("recorded queries: %w", err)
	}
	all, err := ParseRecordedQueries(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return all, nil
}

// ParseRecordedQueries is RecordedQueries of what such a file holds.
func ParseRecordedQueries(data []byte) ([]RecordedQuery, error) {
	var all []RecordedQuery
	for text := range bytes.Lines(data) {
		var line struct {
			Query       string   `json:"query"`
			AtBlock     uint64   `json:"atBlock"`
			Keys        []string `json:"keys"`
			ArkivAgrees bool     `json:"arkivAgrees"`
		}
		if err := unmarshal(text, &line); err != nil {
			return nil, fmt.Errorf("query %d: %w: %w", len(all)+1, ErrFormat, err)
		}
		q := RecordedQuery{Query: line.Query, AtBlock: line.AtBlock, ArkivAgrees: line.ArkivAgrees}
		for _, text := range line.Keys {
			key, err := entity.ParseKey(text)
			if err != nil {
				return nil, fmt.Errorf("query %d: %w: %w", len(all)+1, ErrFormat, err)
			}
			q.Keys = append(q.Keys, key)
		}
		all = append(all, q)
	}
	return all, nil
}
