package eav

import (
	"context"

	"github.com/varvedb/varve/internal/layout"
	"github.com/varvedb/varve/store/driver"
)

// CompileQuery is the statement of a request, for tests that look at its plan.
func CompileQuery(ctx context.Context, l *Layout, q driver.Querier, at uint64, req layout.Request) (string, []any, error) {
	s, args, err := view{l, q, at}.compileQuery(ctx, req)
	return s.Text, args, err
}
