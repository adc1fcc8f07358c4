package cli

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/internal/lab"
)

// TestShow: the sentence that all answers were right is printed only where each
// run ended well and stores with the same blocks have the same contents. The
// tables are printed in any case.
func TestShow(t *testing.T) {
	for _, tt := range []struct {
		name, digest string
		failed, want error
	}{
		{"well", "7 abc", nil, nil},
		{"a failed run", "7 abc", errDiskFull, errDiskFull},
		{"another digest", "7 abd", nil, bench.ErrMismatch},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			set, err := lab.OpenSet(dir)
			require.NoError(t, err)
			found, err := lab.Find([]string{"Q1"})
			require.NoError(t, err)
			add := func(engine, layout, digest string, failed error) {
				r := &lab.Record{Name: "FirstLook", Count: 1, Metrics: []bench.Metric{{Value: 3, Unit: "commit-p50-ms"}}, Err: failed,
					Keys: lab.Keys{{Name: "engine", Value: engine}, {Name: "layout", Value: layout}, {Name: "entities", Value: "7"}}}
				r.Manifest.Set(lab.DigestKey, digest)
				require.NoError(t, set.Add("Q1", engine, "now", r))
			}
			add("one", "arkiv", "7 abc", nil)
			add("two", "compact", tt.digest, nil)
			if tt.failed != nil {
				add("two", "arkiv", "", tt.failed)
			}
			var out, errs bytes.Buffer
			err = show(&env{ctx: t.Context(), stdout: &out, stderr: &errs}, dir, found[0], false, nil)
			require.Contains(t, out.String(), "| two    | compact")
			if tt.want == nil {
				require.NoError(t, err)
				require.Contains(t, errs.String(), "Every answer was compared with the right one.")
			} else {
				require.ErrorContains(t, err, tt.want.Error())
				require.Empty(t, errs.String())
			}
		})
	}
}

var errDiskFull = errors.New("the disk is full")
