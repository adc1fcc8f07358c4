// Package engine lists the engines of this module. All code that needs their
// names, files or order reads it here; outside of their own packages no engine
// is named elsewhere. The list does not include what an engine can do: that is
// in driver.Capabilities.
package engine

import (
	"net/url"
	"slices"
	"strings"
)

// Module is the import path of this module.
const Module = "github.com/varvedb/varve"

// Main is the command that most engines are in.
const Main = "varve"

// Engine is one engine.
type Engine struct {
	Name      string   // the URL's scheme, and the last element of its packages in store and bench
	Internal  []string // internal packages that only this engine uses
	Libraries []string // patterns of third-party packages that only this engine imports
	File      string   // the name of a database in a private directory
	Command   string   // the only command that links it; "" when all do
	Client    string   // the library (driver.Info) for its servers, if it differs from the one for files: a program links one of them
	Serves    string   // the only command that links Client
	Server    bool     // a path is the directory of a server that is started for it
	Loads     float64  // estimated rows a second, at least, into a layout with few indexes on two slow cores
}

// Package returns the import path of the engine.
func (e Engine) Package() string { return Module + "/store/" + e.Name }

// Remote reports whether a URL is of a server that the client library opens.
func (e Engine) Remote(u *url.URL) bool {
	inner, _, _ := strings.Cut(u.Opaque, ":")
	return e.Client != "" && (u.Host != "" || u.User != nil || slices.Contains([]string{"http", "https", "ws", "wss"}, strings.ToLower(inner)))
}

// All lists the engines in the order in which they are shown.
var All = []Engine{
	{Name: "sqlite", Loads: 150_000, Libraries: []string{"github.com/mattn/go-sqlite3/..."}, File: "varve.db", Command: Main},
	{Name: "sqlitego", Loads: 100_000, Libraries: []string{"modernc.org/..."}, File: "varve.db"},
	{Name: "libsql", Loads: 120_000, Libraries: []string{"github.com/tursodatabase/..."}, File: "varve.db", Command: "varve-libsql",
		Client: Module + "/store/libsql/remote", Serves: Main},
	{Name: "duckdb", Loads: 20_000, Libraries: []string{"github.com/duckdb/..."}, File: "varve.duckdb"},
	{Name: "postgres", Loads: 80_000, Libraries: []string{"github.com/jackc/pgx/...", "github.com/xi2/xz/..."},
		Internal: []string{"pgembed", "pgtest"}, File: "varve", Server: true},
}

// Reference returns the engine with which others are compared in each sitting:
// the first one.
func Reference() string { return All[0].Name }

// Names returns the names in the order of All.
func Names() []string {
	names := make([]string, len(All))
	for i, e := range All {
		names[i] = e.Name
	}
	return names
}

// Rank returns the index of an engine in All; unlisted ones come last.
func Rank(name string) int {
	if i := slices.Index(Names(), name); i >= 0 {
		return i
	}
	return len(All)
}

// Find returns the engine with a name; for an unlisted name, an Engine with
// only that name.
func Find(name string) Engine {
	if i := Rank(name); i < len(All) {
		return All[i]
	}
	return Engine{Name: name, File: "varve.db"}
}
