package schemas

// Graph is the SQL of a workload over relationships in separate tables, in one
// dialect.
type Graph struct {
	Tables     []string          // CREATE TABLE statements
	Indexes    []Index           // made after the rows are in
	Statements map[string]string // by name
}

// GraphTables returns the SQL of the permission workload ("rebac": users,
// organizations, groups with their hierarchy, resources, access lists and the
// closure of group membership) or of the social graph ("social": one table of
// relationships) in a dialect ("sqlite", "duckdb", "postgres").
func GraphTables(name, dialect string) (Graph, error) {
	tables, err := readScript(name, dialect, "tables.sql")
	if err != nil {
		return Graph{}, err
	}
	indexes, err := readIndexes(name, dialect)
	if err != nil {
		return Graph{}, err
	}
	statements, err := readStatements(name, dialect)
	return Graph{Tables: tables, Indexes: indexes, Statements: statements}, err
}
