package cli

import (
	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/internal/verdict"
)

// decideCmd says what the results mean: which engine, and go or no-go. It
// succeeds whatever the answer is, also when that is unknown.
type decideCmd struct {
	Results string `arg:"" help:"Directory of the results." type:"existingdir"`
	JSON    bool   `help:"Print every criterion as JSON."`
}

// Run evaluates.
func (c *decideCmd) Run(e *env) error {
	results, err := result.Read(c.Results)
	if err != nil {
		return err
	}
	evaluation := verdict.Evaluate(results)
	if c.JSON {
		return printJSON(e.stdout, evaluation)
	}
	return evaluation.WriteText(e.stdout)
}
