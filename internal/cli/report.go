package cli

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/varvedb/varve/internal/answer"
	"github.com/varvedb/varve/internal/filesync"
	"github.com/varvedb/varve/internal/lab"
	"github.com/varvedb/varve/internal/report"
)

// reportCmd shows a result set.
type reportCmd struct {
	Results  string `arg:"" help:"Directory of result files, or one of them." type:"path"`
	Out      string `short:"o" help:"File of the page; report.html, or report.md with --markdown, when not given." type:"path"`
	Title    string `help:"Title of the page." default:"Varve: results"`
	Markdown bool   `help:"Write Markdown instead of HTML, with its pictures in files in the same directory."`
	Check    bool   `help:"Write nothing; fail if a line cannot be read or a table mixes settings."`
}

// Run writes the page. The file appears complete or not at all.
func (c *reportCmd) Run(e *env) error {
	set, err := loadSet(e, c.Results)
	if err != nil {
		return err
	}
	page, _, err := pageOf(set, c.Title)
	if err != nil {
		return err
	}
	if c.Check {
		if err := page.Check(); err != nil {
			return err
		}
		fmt.Fprintf(e.stdout, "%d measurements of %d sittings: all are read, and no table mixes settings\n", page.Lines, len(page.Sittings.Rows))
		return nil
	}
	out, write := cmp.Or(c.Out, "report.html"), report.WriteHTML
	if c.Markdown {
		out = cmp.Or(c.Out, "report.md")
		stem := strings.TrimSuffix(out, filepath.Ext(out)) + "-"
		for _, q := range page.Questions {
			for _, pic := range q.Pictures {
				if err := filesync.Replace(stem+pic.Name+".svg", pic.SVG, 0o644); err != nil {
					return err
				}
			}
		}
		write = func(w io.Writer, p *report.Page) error {
			return report.WriteMarkdown(w, p, func(pic *report.Picture) string { return filepath.Base(stem + pic.Name + ".svg") })
		}
	}
	n, err := savePage(out, page, write)
	if err != nil {
		return err
	}
	fmt.Fprintf(e.stdout, "%s: %d measurements, %s\n", out, page.Lines, size(uint64(n)))
	return nil
}

// savePage writes a page, and returns its size in bytes.
func savePage(path string, page *report.Page, write func(io.Writer, *report.Page) error) (int, error) {
	var text bytes.Buffer
	if err := write(&text, page); err != nil {
		return 0, err
	}
	return text.Len(), filesync.Replace(path, text.Bytes(), 0o644)
}

// pageOf builds the page of a set, with the sentences that answer its
// questions.
func pageOf(set *report.Set, title string) (*report.Page, *answer.Answers, error) {
	page, err := report.NewPage(set, title, lab.Sections())
	if err != nil {
		return nil, nil, err
	}
	return page, answer.Evaluate(set, page.Questions), nil
}

// loadSet reads results. It prints once which lines could not be read and what
// the marks of figures mean. A path without results is a usage error.
func loadSet(e *env, path string) (*report.Set, error) {
	set, err := report.Load(path)
	if err != nil {
		return nil, usageError{fmt.Errorf("read results: %w", err)}
	}
	for _, w := range set.Warnings {
		fmt.Fprintln(e.stderr, "warning:", w)
	}
	fmt.Fprint(e.stderr, report.Wrap(set.Disturbance(), ""))
	return set, nil
}
