package driver

// Dialect is an SQL dialect. A schema has one file for each dialect that
// differs from the common one.
type Dialect string

// The dialects. libSQL reads SQLite's.
const (
	SQLite   Dialect = "sqlite"
	DuckDB   Dialect = "duckdb"
	Postgres Dialect = "postgres"
)

// Traits describe how a dialect's engines run statements. Callers choose SQL by
// these traits and never by the dialect's name.
type Traits struct {
	// Compiled: a statement is compiled once and then runs in this process with
	// any arguments, so one more statement or row is cheap. Otherwise each
	// statement is planned again or sent to a server, which costs as much as
	// reading hundreds of rows.
	Compiled bool

	// OrderedIndexes: an index returns its rows in order, and finds the rows of
	// a join. Otherwise a lookup scans the table.
	OrderedIndexes bool

	// BufferedResults: the whole result of a query is in memory before its first
	// row is read.
	BufferedResults bool

	// TextAsBlob: columns of text are selected as CAST(… AS BLOB), because clients
	// would interpret the text.
	TextAsBlob bool

	// BlobSearch: the function instr finds bytes in a blob.
	BlobSearch bool

	// IndexHints: INDEXED BY names the index of a table, and a unary plus keeps the
	// planner from searching by a column.
	IndexHints bool

	// JoinedSubqueries: the planner turns EXISTS into a join, and estimates its
	// number of rows badly.
	JoinedSubqueries bool

	// Regexp is the condition that a column (written as {}) matches a regular
	// expression from start to end; "" means that GLOB is used.
	Regexp string
}

var traits = map[Dialect]Traits{
	SQLite: {
		Compiled: true, OrderedIndexes: true, TextAsBlob: true, BlobSearch: true, IndexHints: true,
	},
	DuckDB: {
		BufferedResults: true, Regexp: "regexp_full_match({}, ?, 's')",
	},
	Postgres: {
		OrderedIndexes: true, JoinedSubqueries: true, Regexp: "{} ~ ?",
	},
}

// Traits returns how the dialect's engines run statements.
func (d Dialect) Traits() Traits { return traits[d] }

// TextColumn returns the expression that selects a column of text unchanged.
func (t Traits) TextColumn(column string) string {
	if t.TextAsBlob {
		return "CAST(" + column + " AS BLOB)"
	}
	return column
}
