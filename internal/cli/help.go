package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/varvedb/varve/docs"
)

// helpCmd prints what else there is to read.
type helpCmd struct {
	Topic string `arg:"" optional:"" help:"What to read about; the topics are listed when none is given."`
}

// Run prints a document, or which there are.
func (c *helpCmd) Run(e *env) error {
	if c.Topic != "" {
		text, err := fs.ReadFile(docs.FS, c.Topic+".md")
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) {
			return usageError{fmt.Errorf("no topic %q: varve help lists them, and varve %s --help is of a command", c.Topic, c.Topic)}
		}
		if err == nil {
			_, err = e.stdout.Write(text)
		}
		return err
	}
	names, err := fs.Glob(docs.FS, "*.md")
	if err != nil {
		return err
	}
	fmt.Fprintln(e.stdout, "varve help TOPIC prints one of these; varve COMMAND --help is of a command.")
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
