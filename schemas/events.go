package schemas

import (
	"fmt"
	"slices"
	"strings"
)

// Events describes one SQL shape of the event store in one dialect.
type Events struct {
	Name       string
	About      string            // what it is, for documents
	Tables     []string          // CREATE TABLE statements
	Indexes    []Index           // in the order in which they are made
	Statements map[string]string // by name
}

// eventLayouts are the layouts of the event store and the dialects that have
// them.
var eventLayouts = map[string]struct {
	about    string
	dialects []string
}{
	"gin":  {"tags as an array in the row of an event, and GIN over it", []string{"postgres"}},
	"tags": {"postings by tag and type, written for many events at once", []string{"sqlite", "duckdb", "postgres"}},
}

// EventLayouts returns the names of the event layouts that a dialect has.
func EventLayouts(dialect string) []string {
	var names []string
	for name, layout := range eventLayouts {
		if slices.Contains(layout.dialects, dialect) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// EventTables returns an event layout in a dialect ("sqlite", "duckdb",
// "postgres").
func EventTables(name, dialect string) (Events, error) {
	known := EventLayouts(dialect)
	if !slices.Contains(known, name) {
		return Events{}, fmt.Errorf("unknown event layout %q for %s; known are %s", name, dialect, strings.Join(known, ", "))
	}
	dir := "events/" + name
	tables, err := readScript(dir, dialect, "tables.sql")
	if err != nil {
		return Events{}, err
	}
	indexes, err := readIndexes(dir, dialect)
	if err != nil {
		return Events{}, err
	}
	statements, err := readStatements(dir, dialect)
	return Events{Name: name, About: eventLayouts[name].about, Tables: tables, Indexes: indexes, Statements: statements}, err
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
