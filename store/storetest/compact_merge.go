package storetest

import (
	"fmt"
	"testing"
)

// RunCompact runs what blocks promise on the layout compact with limits on what
// it puts off that are so small that tests meet every state of a merge: between
// blocks, between the steps of one, and with blocks that do the work themselves.
// With quick it tries one limit and leaves out what RunEntities has tried with
// the usual one, for engines whose SQL is that of another or on which committing is slow.
func RunCompact(t *testing.T, h Harness, quick bool) {
	newURL, limits := h.NewURL, []int{1, 3, 20}
	if quick {
		limits = []int{3}
	}
	for _, backlog := range limits {
		t.Run(fmt.Sprintf("backlog=%d", backlog), func(t *testing.T) {
			h := h
			h.Layouts = []string{"compact"}
			h.NewURL = func(t testing.TB) string {
				return withParams(t, newURL(t), "backlog", fmt.Sprint(backlog))
			}
			RunDifferential(t, h)
			if quick {
				return
			}
			if backlog == 3 || *everyLayout {
				RunEntities(t, h)
			}
			t.Run("order", func(t *testing.T) { runOrder(t, h, "compact") })
			t.Run("cursor", func(t *testing.T) { runCursor(t, h, "compact") })
		})
	}
}
