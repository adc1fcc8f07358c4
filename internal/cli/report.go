package cli

import (
	"bytes"
	"fmt"
	"os"

	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/internal/experiment"
	"github.com/varvedb/varve/internal/filesync"
	"github.com/varvedb/varve/internal/report"
	"github.com/varvedb/varve/internal/verdict"
)

// reportCmd shows a result set.
type reportCmd struct {
	Results     string `arg:"" help:"Directory of the results." type:"existingdir"`
	Out         string `short:"o" help:"File of the page." default:"report.html" type:"path"`
	Title       string `help:"Title of the page." default:"Varve: results"`
	Experiments string `help:"Render the tables of this Markdown file between its markers instead of a page." type:"existingfile" placeholder:"FILE"`
	Check       bool   `help:"With --experiments: change nothing, and fail when the file differs from what would be rendered."`
}

// Run renders.
func (c *reportCmd) Run(e *env) error {
	if c.Check && c.Experiments == "" {
		return usageError{fmt.Errorf("--check needs --experiments")}
	}
	results, err := result.ReadAll(c.Results)
	if err != nil {
		return err
	}
	for _, w := range results.Warnings {
		fmt.Fprintln(e.stderr, "report:", w)
	}
	in := &report.Input{Title: c.Title, Results: results}
	for _, x := range append(experiment.All(), experiment.Machine) {
		in.Catalogue = append(in.Catalogue, report.Entry{ID: x.ID, Title: x.Title, Question: x.Question, Earlier: x.Earlier})
	}
	if c.Experiments != "" {
		return c.tables(e, in)
	}
	var page bytes.Buffer
	if err := report.WriteHTML(&page, in); err != nil {
		return err
	}
	if err := filesync.Replace(c.Out, page.Bytes(), 0o644); err != nil {
		return err
	}
	fmt.Fprintf(e.stdout, "%s: %d records, %.1f MB; open it in a browser\n", c.Out, len(results.Records), float64(page.Len())/1e6)
	return nil
}

// tables renders the tables of a document in place, or compares.
func (c *reportCmd) tables(e *env, in *report.Input) error {
	old, err := os.ReadFile(c.Experiments)
	if err != nil {
		return err
	}
	text, err := report.RenderMarkdown(string(old), in)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Experiments, err)
	}
	switch {
	case text == string(old):
		fmt.Fprintf(e.stdout, "%s is what %s says\n", c.Experiments, c.Results)
		return nil
	case c.Check:
		fmt.Fprint(e.stdout, report.Diff(string(old), text))
		return fmt.Errorf("%s differs from the results; render it again with varve report %s --experiments %s", c.Experiments, c.Results, c.Experiments)
	}
	if err := filesync.Replace(c.Experiments, []byte(text), 0o644); err != nil {
		return err
	}
	fmt.Fprintf(e.stdout, "%s rendered\n", c.Experiments)
	return nil
}

// decideCmd says what the results mean: which engine, and go or no-go. It
// succeeds whatever the answer is, also when that is unknown.
type decideCmd struct {
	Results string `arg:"" help:"Directory of the results." type:"existingdir"`
	JSON    bool   `help:"Print every criterion as JSON."`
}

// Run evaluates.
func (c *decideCmd) Run(e *env) error {
	results, err := result.ReadAll(c.Results)
	if err != nil {
		return err
	}
	evaluation := verdict.Evaluate(results)
	if c.JSON {
		return printJSON(e.stdout, evaluation)
	}
	return evaluation.WriteText(e.stdout)
}
