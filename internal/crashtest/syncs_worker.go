package crashtest

import (
	"context"
	"os"
)

// syncMark is a path that no file has: asking for it is a system call that a tracer
// sees and that changes nothing.
const syncMark = "/varve-mark-"

// warmCommits are made before commits are counted: the first ones make pages and
// statements that later ones find.
const warmCommits = 5

// commitMarked makes w.Syncs commits, one by one, between two marks.
func (w *worker) commitMarked(ctx context.Context, s subject) error {
	for i := range warmCommits + w.Syncs {
		if i == warmCommits {
			_, _ = os.Stat(syncMark + "begin")
		}
		if err := s.commit(ctx, i); err != nil {
			return err
		}
	}
	_, _ = os.Stat(syncMark + "end")
	return nil
}
