package eav

import (
	"slices"

	"github.com/varvedb/varve/schemas"
	"github.com/varvedb/varve/store/driver"
)

// shape has the differences between the bi-temporal and the simple tables in
// SQL that is built in Go.
type shape struct {
	from    string // column of a version's first block
	visible string // payload e is visible at ?
	tables  [tables]*driver.Table
}

// The tables of a shape.
const (
	inStrings = iota
	inNumbers
	inPayloads
	tables
)

// The names of the attribute tables.
const (
	texts   = "string_attributes"
	numbers = "numeric_attributes"
)

func column(name string, t driver.Type) driver.Column { return driver.Column{Name: name, Type: t} }

var (
	entityKey = column("entity_key", driver.Blob)
	fromBlock = column("from_block", driver.Int)
	toBlock   = column("to_block", driver.Int)
	attrKey   = column("key", driver.Text)
	textValue = column("value", driver.Text)
	uintValue = column("value", driver.Uint)
	payload   = column("payload", driver.Blob)
	cType     = column("content_type", driver.Text)
	strJSON   = column("string_attributes", driver.Text)
	numJSON   = column("numeric_attributes", driver.Text)
	block     = column("block", driver.Int)
	expires   = column("expires", driver.Int)
)

func table(name string, columns ...driver.Column) *driver.Table {
	return &driver.Table{Name: name, Columns: columns}
}

func hasIndex(schema schemas.Layout, name string) bool {
	return slices.ContainsFunc(schema.Indexes, func(index schemas.Index) bool { return index.Name == name })
}

// newClosings describes the updates that end versions, by the columns of a
// schema's indexes.
func newClosings(schema schemas.Layout) (list [tables]*driver.Update) {
	for i, table := range temporal.tables {
		byEntity := hasIndex(schema, table.Name+"_pk") || hasIndex(schema, table.Name+"_key_idx")
		u := &driver.Update{Table: table.Name, Set: toBlock, Indexed: byEntity}
		if u.Key = []driver.Column{entityKey, attrKey, fromBlock}; i == inPayloads {
			u.Key = []driver.Column{entityKey, fromBlock}
		}
		list[i] = u
	}
	return list
}

// temporal has rows that are valid in [from_block, to_block). As in Arkiv's
// SQL, the condition is on an expression, so that SQLite does not search by
// to_block, which is above the head in all rows of living entities.
var temporal = shape{
	from:    "from_block",
	visible: "? BETWEEN e.from_block AND e.to_block - 1",
	tables: [tables]*driver.Table{
		table(texts, entityKey, fromBlock, toBlock, attrKey, textValue),
		table(numbers, entityKey, fromBlock, toBlock, attrKey, uintValue),
		table("payloads", entityKey, fromBlock, toBlock, payload, cType, strJSON, numJSON),
	},
}

// simple has one row of each kind for an entity: its last version's.
var simple = shape{
	from:    "block",
	visible: "e.expires > ?",
	tables: [tables]*driver.Table{
		table(texts, entityKey, block, attrKey, textValue),
		table(numbers, entityKey, block, attrKey, uintValue),
		table("payloads", entityKey, block, expires, payload, cType, strJSON, numJSON),
	},
}
