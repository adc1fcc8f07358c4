package eav

import (
	"github.com/varvedb/varve/schemas"
	"github.com/varvedb/varve/store/driver"
)

// shape is where the bi-temporal tables and the simple ones differ in the SQL
// that is put together in Go.
type shape struct {
	from             string                  // column of a version's first block
	payloadVisible   string                  // payload p is visible at ?; visibleArgs says how often
	attributeVisible func(row string) string // the same for an attribute, with the leading AND
	visibleArgs      int
	attributeArgs    int

	tables [tables]*driver.Table
}

// The tables of a shape.
const (
	inStrings = iota
	inNumbers
	inPayloads
	tables
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

// newClosings describes, for what the indexes of the tables find, the updates that end versions.
func newClosings(access map[string]access) (list [tables]*driver.Update) {
	for i, table := range temporal.tables {
		u := &driver.Update{Table: table.Name, Set: toBlock, Indexed: access[table.Name].byEntity}
		if u.Key = []driver.Column{entityKey, attrKey, fromBlock}; i == inPayloads {
			u.Key = []driver.Column{entityKey, fromBlock}
		}
		list[i] = u
	}
	return list
}

// access tells what the indexes of a table find.
type access struct {
	byEntity bool // the version, or an attribute, of one entity
	byValue  bool // the entities with name = value
	newest   bool // those in the order of their versions' first blocks
	byName   bool // the entities with a name, in that order
	byBlock  bool // all versions, in that order
}

// newAccess describes the indexes that a schema has, by table.
func newAccess(schema schemas.Layout) map[string]access {
	has := map[string]bool{}
	for _, index := range schema.Indexes {
		has[index.Name] = true
	}
	list := map[string]access{}
	for _, t := range temporal.tables {
		table := t.Name
		list[table] = access{
			byEntity: has[table+"_pk"] || has[table+"_key_idx"],
			byValue:  has[table+"_kv_temporal_idx"] || has[table+"_kv_idx"],
			newest:   has[table+"_kv_temporal_idx"],
			byName:   has[table+"_k_temporal_idx"],
			byBlock:  has[table+"_entity_key_value_index"] || has[table+"_entity_key_index"],
		}
	}
	return list
}

// temporal is rows valid in [from_block, to_block).
var temporal = shape{
	from:             "from_block",
	payloadVisible:   "p.from_block <= ? AND p.to_block > ?",
	attributeVisible: func(row string) string { return " AND " + row + ".from_block <= ? AND " + row + ".to_block > ?" },
	visibleArgs:      2,
	attributeArgs:    2,

	tables: [tables]*driver.Table{
		table("string_attributes", entityKey, fromBlock, toBlock, attrKey, textValue),
		table("numeric_attributes", entityKey, fromBlock, toBlock, attrKey, uintValue),
		table("payloads", entityKey, fromBlock, toBlock, payload, cType, strJSON, numJSON),
	},
}

// simple is one row of each kind for an entity, the last.
var simple = shape{
	from:             "block",
	payloadVisible:   "p.expires > ?",
	attributeVisible: func(string) string { return "" },
	visibleArgs:      1,

	tables: [tables]*driver.Table{
		table("string_attributes", entityKey, block, attrKey, textValue),
		table("numeric_attributes", entityKey, block, attrKey, uintValue),
		table("payloads", entityKey, block, expires, payload, cType, strJSON, numJSON),
	},
}
