// Package schemas holds the SQL of every layout in every dialect as embedded
// .sql files, with Go descriptors of their tables. It imports no other package
// of the module and runs no SQL.
//
// A layout's folder has a directory "common" and one for each dialect. For
// tables.sql and indexes.sql a dialect's file replaces the common one; of
// statements.sql it replaces the statements of the same name. A file spread.sql is there
// where the layout's tables can be spread over several machines.
package schemas

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

//go:embed entities events meta rebac social
var files embed.FS

// Layout describes one SQL shape of the entity store in one dialect.
type Layout struct {
	Name        string
	About       string            // a description for documents
	Runs        bool              // entities are found by sorted runs that are merged later (HasRuns)
	Temporal    bool              // keeps history: rows valid in [from_block, to_block)
	Analyze     bool              // the planner's statistics are gathered (ANALYZE)
	NewestFirst bool              // the newest matches are read in the order of an index
	Tables      []string          // CREATE TABLE statements
	Spread      []string          // what spreads them over machines, none where that cannot be
	Indexes     []Index           // in the order in which they are made
	Statements  map[string]string // by name
}

// Index is one index of a layout.
type Index struct {
	Name   string
	Serves string // the query it is there for
	Unique bool
	SQL    string
}

type entityLayout struct {
	about   string
	folder  string
	analyze bool
	newest  bool
	runs    bool
	indexes func([]Index) []Index
}

func (l entityLayout) temporal() bool { return l.folder != "simple" }

// entityLayouts maps a layout's name to its folder and the indexes it uses.
var entityLayouts = map[string]entityLayout{
	"arkiv": {folder: "arkiv", indexes: firstIndexes(13),
		about: "Arkiv's three tables with its thirteen indexes, every version kept"},
	"arkiv-analyzed": {folder: "arkiv", indexes: firstIndexes(13), analyze: true,
		about: "the same with the planner's statistics"},
	"arkiv-columnar": {folder: "arkiv", indexes: onlyIndexes("payloads_key_idx"),
		about: "the same for engines that scan columns"},
	"arkiv-ordered": {folder: "arkiv", indexes: without(disorderedIndexes...), newest: true,
		about: "the same with one mechanism of ours: the newest matches are read newest first"},
	"arkiv-pruned": {folder: "arkiv", indexes: onlyIndexes(prunedIndexes...),
		about: "the same with the indexes of entities and of values"},
	"bare": {folder: "arkiv", indexes: firstIndexes(0),
		about: "the same without an index"},
	"simple": {folder: "simple", indexes: firstIndexes(6),
		about: "three tables of the current state"},
	"compact": {folder: "compact", indexes: without(), runs: true,
		about: "a block is written once, and merged in the background into sorted runs of postings"},
}

// prunedIndexes are the rest of the thirteen indexes without every index that
// is a prefix of another or begins with a block. Arkiv's SQL does not search by
// value, but people who query the tables directly do.
var prunedIndexes = []string{
	"string_attributes_pk", "string_attributes_kv_temporal_idx",
	"numeric_attributes_pk", "numeric_attributes_kv_temporal_idx",
	"payloads_pk", "payloads_delete_index",
}

// disorderedIndexes are the indexes that arkiv-ordered leaves out: the two that
// begin with the block and include the value (no query needs the one on
// strings), the duplicate of a primary key, and the index of arkiv-columnar.
var disorderedIndexes = []string{
	"string_attributes_entity_key_value_index", "numeric_attributes_entity_key_value_index",
	"string_attributes_entity_kv_idx", "payloads_key_idx",
}

// ablationSteps is the largest N of the layouts arkiv-0 … arkiv-N.
const ablationSteps = 13

// firstIndexes keeps the first n indexes of a folder.
func firstIndexes(n int) func([]Index) []Index {
	return func(all []Index) []Index { return all[:n] }
}

// onlyIndexes keeps the named indexes.
func onlyIndexes(names ...string) func([]Index) []Index {
	return func(all []Index) []Index {
		return slices.DeleteFunc(slices.Clone(all), func(i Index) bool { return !slices.Contains(names, i.Name) })
	}
}

func without(names ...string) func([]Index) []Index {
	return func(all []Index) []Index {
		return slices.DeleteFunc(slices.Clone(all), func(i Index) bool { return slices.Contains(names, i.Name) })
	}
}

// EntityLayouts returns the names of the entity layouts, the ablation layouts
// last.
func EntityLayouts() []string {
	names := make([]string, 0, len(entityLayouts))
	for name := range entityLayouts {
		names = append(names, name)
	}
	slices.Sort(names)
	return append(names, AblationLayouts()...)
}

// DefaultLayout is the layout of a new store if none is named.
const DefaultLayout = "compact"

// Layouts returns the names of the entity layouts for new stores. LabLayouts
// can be opened as well.
func Layouts() []string {
	lab := LabLayouts()
	return slices.DeleteFunc(EntityLayouts(), func(name string) bool { return slices.Contains(lab, name) })
}

// LabLayouts returns layouts that leave out indexes, so that the lab can
// measure the cost of each index.
func LabLayouts() []string { return append([]string{"bare"}, AblationLayouts()...) }

// HasRuns reports whether an entity layout keeps its index in sorted runs that
// are merged later. The tables of such a layout are not rows of versions.
func HasRuns(name string) bool { return entityLayouts[name].runs }

// CountIndexes returns how many indexes a layout has in a dialect that uses all
// of them, such as SQLite's; zero when there is no such layout.
func CountIndexes(name string) int {
	l, err := Entities(name, "sqlite")
	if err != nil {
		return 0
	}
	return len(l.Indexes)
}

// AblationLayouts returns arkiv-0 … arkiv-13: the layout arkiv with its first N indexes.
func AblationLayouts() []string {
	names := make([]string, ablationSteps+1)
	for n := range names {
		names[n] = "arkiv-" + strconv.Itoa(n)
	}
	return names
}

// Entities returns an entity layout in a dialect ("sqlite", "duckdb", "postgres").
func Entities(name, dialect string) (Layout, error) {
	def, ok := entityLayouts[name]
	if n, err := strconv.Atoi(strings.TrimPrefix(name, "arkiv-")); !ok && err == nil && n >= 0 && n <= ablationSteps && name == "arkiv-"+strconv.Itoa(n) {
		def, ok = entityLayout{folder: "arkiv", indexes: firstIndexes(n), about: fmt.Sprintf("the same with the first %d of the thirteen indexes", n)}, true
	}
	if !ok {
		return Layout{}, fmt.Errorf("unknown entity layout %q; known are %s", name, strings.Join(EntityLayouts(), ", "))
	}
	dir := "entities/" + def.folder
	indexes, err := readIndexes(dir, dialect)
	if err != nil {
		return Layout{}, err
	}
	tables, err := readScript(dir, dialect, "tables.sql")
	if err != nil {
		return Layout{}, err
	}
	spread, err := readScript(dir, dialect, "spread.sql")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Layout{}, err
	}
	statements, err := readStatements(dir, dialect)
	if err != nil {
		return Layout{}, err
	}
	return Layout{
		Name:        name,
		About:       def.about,
		Runs:        def.runs,
		Temporal:    def.temporal(),
		Analyze:     def.analyze,
		NewestFirst: def.newest,
		Tables:      tables,
		Spread:      spread,
		Indexes:     def.indexes(indexes),
		Statements:  statements,
	}, nil
}

// Meta is the SQL of the tables in which a store records its settings, whatever
// its layout.
type Meta struct {
	Tables     []string
	Statements map[string]string
}

// MetaTables returns the SQL of a store's own tables in a dialect.
func MetaTables(dialect string) (Meta, error) {
	tables, err := readScript("meta", dialect, "tables.sql")
	if err != nil {
		return Meta{}, err
	}
	statements, err := readStatements("meta", dialect)
	return Meta{Tables: tables, Statements: statements}, err
}

// readScript returns the statements of a dialect's file, or of the common one.
func readScript(dir, dialect, name string) ([]string, error) {
	text, err := files.ReadFile(path.Join(dir, dialect, name))
	if errors.Is(err, fs.ErrNotExist) {
		text, err = files.ReadFile(path.Join(dir, "common", name))
	}
	if err != nil {
		return nil, fmt.Errorf("schema %s for dialect %q: %w", dir, dialect, err)
	}
	var list []string
	for _, s := range splitScript(string(text)) {
		list = append(list, s.sql)
	}
	return list, nil
}

func readIndexes(dir, dialect string) ([]Index, error) {
	text, err := files.ReadFile(path.Join(dir, dialect, "indexes.sql"))
	if errors.Is(err, fs.ErrNotExist) {
		text, err = files.ReadFile(path.Join(dir, "common", "indexes.sql"))
	}
	if err != nil {
		return nil, fmt.Errorf("schema %s for dialect %q: %w", dir, dialect, err)
	}
	var list []Index
	for _, s := range splitScript(string(text)) {
		fields := strings.Fields(strings.Replace(s.sql, "UNIQUE ", "", 1))
		if len(fields) < 3 {
			return nil, fmt.Errorf("schema %s: not an index: %q", dir, s.sql)
		}
		list = append(list, Index{Name: fields[2], Serves: strings.TrimPrefix(s.comment, "Serves: "), Unique: strings.HasPrefix(s.sql, "CREATE UNIQUE "), SQL: s.sql})
	}
	return list, nil
}

// readStatements returns the common statements by name. A dialect's statement
// replaces the common one.
func readStatements(dir, dialect string) (map[string]string, error) {
	statements := map[string]string{}
	for _, sub := range []string{"common", dialect} {
		text, err := files.ReadFile(path.Join(dir, sub, "statements.sql"))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, s := range splitScript(string(text)) {
			if s.name == "" {
				return nil, fmt.Errorf("schema %s/%s: statement without a name: %q", dir, sub, s.sql)
			}
			statements[s.name] = s.sql
		}
	}
	return statements, nil
}
