package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"
)

// healthCmd asks a service whether it is ready, for the health check of a
// container.
type healthCmd struct {
	URL     string        `arg:"" optional:"" default:"http://127.0.0.1:8080" help:"Address of varve serve's REST interface."`
	Timeout time.Duration `min:"1ms" max:"1h" help:"How long to wait for the answer." default:"3s"`
}

// Run fails unless the service is ready.
func (c *healthCmd) Run(e *env) error {
	ctx, cancel := context.WithTimeout(e.ctx, c.Timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.URL+"/readyz", nil)
	if err != nil {
		return usageError{err}
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return fmt.Errorf("%w; is varve serve running there?", err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 1024))
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", answer.Status, text)
	}
	if err != nil {
		return err
	}
	_, err = e.stdout.Write(text)
	return err
}
