package schemas

// Events is the SQL of the event tables in one dialect.
type Events struct {
	Tables     []string          // CREATE TABLE statements
	Indexes    []Index           // in the order in which they are made
	Statements map[string]string // by name
}

// EventTables returns the SQL of the event tables in a dialect ("sqlite",
// "duckdb", "postgres").
func EventTables(dialect string) (Events, error) {
	const dir = "events/tags"
	tables, err := readScript(dir, dialect, "tables.sql")
	if err != nil {
		return Events{}, err
	}
	indexes, err := readIndexes(dir, dialect)
	if err != nil {
		return Events{}, err
	}
	statements, err := readStatements(dir, dialect)
	return Events{Tables: tables, Indexes: indexes, Statements: statements}, err
}

// CheckpointTables returns the SQL of the table of consumers' checkpoints in a dialect.
func CheckpointTables(dialect string) (Meta, error) {
	tables, err := readScript("events/checkpoints", dialect, "tables.sql")
	if err != nil {
		return Meta{}, err
	}
	statements, err := readStatements("events/checkpoints", dialect)
	return Meta{Tables: tables, Statements: statements}, err
}
