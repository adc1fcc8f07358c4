package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/varvedb/varve/docs"
)

const about = `Varve stores the entities of a blockchain node on an embedded engine, and measures which engine and which table layout to choose.

A store is named by a URL:

    sqlite:node.db                     a file; sqlite:///abs/path.db an absolute one
    sqlitego:node.db                   the same file, without a C compiler
    libsql:node.db                     libsql:https://host a server
    duckdb:node.duckdb
    postgres:dir                       a server that Varve starts in a directory
    postgres://user@host/db            a running server

with parameters: sqlite:node.db?layout=arkiv&durability=relaxed&memory=256MiB.
varve help engines has all of them.`

// groups are the headings of the command list.
var groups = []kong.Group{
	{Key: "store", Title: "Store data:"},
	{Key: "look", Title: "Look at it:"},
	{Key: "safe", Title: "Keep it safe:"},
	{Key: "serve", Title: "Serve it:"},
	{Key: "measure", Title: "Measure it:"},
	{Key: "about", Title: "About Varve:"},
}

// examples are shown in the --help of the command that they begin with.
const examples = `
varve import blocks.tar sqlite:node.db
varve import sqlite-store.db sqlite:node.db
varve import mendoza:scale=0.05 sqlite:mendoza.db
varve import dc:scale=0.01,load=100 dc.tar
varve import blocks.tar sqlite:big.db --factor 5
varve follow http://127.0.0.1:8545 sqlite:chain.db
varve events append sqlite:events.db events.jsonl
varve events read sqlite:events.db --type course.opened --limit 10
varve events tail sqlite:events.db --tag course=42
varve events export sqlite:events.db events.jsonl
varve events import sqlite:copy.db events.jsonl
varve events checkpoint list sqlite:events.db
varve events checkpoint set sqlite:events.db mailer 1200
varve events truncate sqlite:events.db --before 100000 --archive old.jsonl
varve events stats sqlite:events.db
varve query sqlite:node.db 'type = "node" && cpu >= 8' --limit 10
varve query sqlite:node.db 'type = "node"' --at 1200 --count
varve history sqlite:node.db 0x00000000000000000000000000000000000000000000000000000000000000aa
varve diff sqlite:node.db 1200 1260
varve log sqlite:node.db --limit 10
varve inspect sqlite:node.db
varve check sqlite:node.db
varve check sqlite:node.db --against blocks.tar
varve check sqlite:node.db --repair
varve backup sqlite:node.db backup-1
varve restore backup-1 sqlite:again.db
varve serve sqlite:node.db --key-file keys
varve node http://127.0.0.1:8545 sqlite:chain.db --listen 127.0.0.1:8555
varve health http://127.0.0.1:8080
varve answer your.db --out results/own
varve compare sqlite postgres
varve run A5 D --engines sqlite,postgres --out results/first
varve bench diff old.txt new.txt
varve report results/first -o report.html
varve torture --for 10m
varve engines
varve version
varve help engines
varve completion -c bash`

// showExamples adds the examples to the help of their commands.
func showExamples(of *kong.Node) {
	for _, command := range of.Leaves(false) {
		name, shown := command.FullPath()+" ", "Example:"
		for line := range strings.Lines(examples) {
			if line = strings.TrimSpace(line); strings.HasPrefix(line+" ", name) {
				shown += "\n\n    " + line
			}
		}
		command.Detail = strings.TrimSpace(command.Detail + "\n\n" + shown)
	}
}

// comment matches comments in a document's source, which say which result a
// figure refers to.
var comment = regexp.MustCompile(`(?m)^<!--[^>]*-->\n|<!--[^>]*-->`)

// helpCmd prints documents.
type helpCmd struct {
	Topic string `arg:"" optional:"" help:"Topic of the page; without one the topics are listed."`
}

// Run prints a document, or the list of documents.
func (c *helpCmd) Run(e *env) error {
	if c.Topic != "" {
		text, err := fs.ReadFile(docs.FS, c.Topic+".md")
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) {
			return usageError{fmt.Errorf("no topic %q; varve help lists the topics, and varve COMMAND --help explains a command", c.Topic)}
		}
		if err == nil {
			_, err = e.stdout.Write(comment.ReplaceAll(text, nil))
		}
		return err
	}
	names, err := fs.Glob(docs.FS, "*.md")
	if err != nil {
		return err
	}
	fmt.Fprintln(e.stdout, "varve help TOPIC prints one of these; varve COMMAND --help explains a command.")
	for _, name := range names {
		text, err := fs.ReadFile(docs.FS, name)
		if err != nil {
			return err
		}
		title, _, _ := bytes.Cut(text, []byte("\n"))
		fmt.Fprintf(e.stdout, "  %-16s %s\n", strings.TrimSuffix(name, ".md"), bytes.TrimPrefix(title, []byte("# ")))
	}
	return nil
}
