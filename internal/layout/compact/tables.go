package compact

import "github.com/varvedb/varve/store/driver"

func ints(names ...string) (list []driver.Column) {
	for _, name := range names {
		list = append(list, driver.Column{Name: name, Type: driver.Int})
	}
	return list
}

func blob(name string) driver.Column { return driver.Column{Name: name, Type: driver.Blob} }

func table(name string, columns ...[]driver.Column) *driver.Table {
	t := &driver.Table{Name: name}
	for _, list := range columns {
		t.Columns = append(t.Columns, list...)
	}
	return t
}

func blobs(names ...string) (list []driver.Column) {
	for _, name := range names {
		list = append(list, blob(name))
	}
	return list
}

// The tables that are written in bulk.
var (
	progressTable = table("progress", ints("merged", "merging", "step", "last"), blobs("tip"),
		ints("next_id", "next_content", "names"), []driver.Column{{Name: "last_sequence", Type: driver.Uint}},
		ints("unordered", "backlog", "live"), blobs("runs"))
	logTable     = table("block_log", ints("block"), blobs("tip", "changes"))
	namesTable   = table("names", ints("id", "kind"), blobs("name"))
	contentTable = table("contents", ints("no"), blobs("content"))
	currentTable = table("current_versions", ints("id", "from_block", "expires"), blobs("entity_key"), ints("content"), blobs("data"))
	keysTable    = table("entity_keys", ints("hash", "id"))
	closedTable  = table("closed_versions", ints("id", "from_block", "to_block", "expires"), blobs("entity_key"), ints("content"), blobs("data"))
)

// The trees of postings: which current versions have a value; and which entities had a
// value in a closed version and no longer have it.
const (
	pastTree = iota
	currentTree
	trees
)

var (
	treeNames  = [trees]string{"past", "current"}
	treeTables = [trees]*driver.Table{
		table("past_postings", ints("run"), blobs("low", "body")),
		table("current_postings", ints("run"), blobs("low", "body")),
	}
)
