package cli

import (
	"fmt"
	"os"
	"time"

	"github.com/gdamore/tcell/v2"
	"golang.org/x/term"

	"github.com/varvedb/varve/internal/top"
)

// topCmd watches a service.
type topCmd struct {
	URL       string        `arg:"" optional:"" default:"http://127.0.0.1:8080" help:"Where varve serve has its REST interface."`
	TokenFile string        `help:"File of the token that the service wants. Else $VARVE_TOKEN." type:"existingfile" placeholder:"FILE"`
	Every     time.Duration `min:"1ms" max:"24h" help:"Between two looks." default:"1s"`
	Count     int           `min:"0" max:"1000000000" help:"Print so many looks, one after the other, and end; without a limit when the output is no terminal." default:"0"`
}

// Run shows or prints.
func (c *topCmd) Run(e *env) error {
	if c.Every <= 0 || c.Count < 0 {
		return usageError{fmt.Errorf("--every %s, --count %d: want positive numbers", c.Every, c.Count)}
	}
	token, err := secret(c.TokenFile, tokenVariable)
	if err != nil {
		return err
	}
	from := top.Source{URL: c.URL, Token: token}
	if f, ok := e.stdout.(*os.File); c.Count > 0 || !ok || !term.IsTerminal(int(f.Fd())) {
		err = top.Print(e.ctx, e.stdout, from, c.Every, c.Count)
	} else {
		var screen tcell.Screen
		if screen, err = tcell.NewScreen(); err == nil {
			err = top.Show(e.ctx, screen, from, c.Every)
		}
	}
	if err != nil {
		return fmt.Errorf("top: %w", err)
	}
	return nil
}
