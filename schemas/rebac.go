package schemas

// Rebac is the SQL of the permission workload: users, organizations, groups with
// their hierarchy, resources, access lists and the closure of group membership.
type Rebac struct {
	Tables     []string          // CREATE TABLE statements
	Indexes    []Index           // made after the rows are in
	Statements map[string]string // by name
}

// RebacTables returns the SQL of the permission workload in a dialect ("sqlite",
// "duckdb", "postgres").
func RebacTables(dialect string) (Rebac, error) {
	const dir = "rebac"
	tables, err := readScript(dir, dialect, "tables.sql")
	if err != nil {
		return Rebac{}, err
	}
	indexes, err := readIndexes(dir, dialect)
	if err != nil {
		return Rebac{}, err
	}
	statements, err := readStatements(dir, dialect)
	return Rebac{Tables: tables, Indexes: indexes, Statements: statements}, err
}
