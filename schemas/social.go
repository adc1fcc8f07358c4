package schemas

// Social is the SQL of the social graph of bench/social in one dialect: one
// table of relationships, and the checks and look-ups over it.
type Social struct {
	Tables     []string
	Statements map[string]string // by name
}

// SocialGraph returns the social graph's SQL in a dialect ("sqlite", "duckdb",
// "postgres").
func SocialGraph(dialect string) (Social, error) {
	tables, err := readScript("social", dialect, "tables.sql")
	if err != nil {
		return Social{}, err
	}
	statements, err := readStatements("social", dialect)
	return Social{Tables: tables, Statements: statements}, err
}
