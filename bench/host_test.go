package bench

import (
	"encoding/json"
	"os"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReadHost(t *testing.T) {
	dir := t.TempDir()
	m, err := DescribeEngine("", nil, dir)
	require.NoError(t, err)
	require.Equal(t, syncs, m.Host.Fsync.Samples)
	require.LessOrEqual(t, m.Host.Fsync.Median, m.Host.Fsync.Max)
	h := ReadHost(dir)
	require.Positive(t, h.Cores)
	if runtime.GOOS == "linux" {
		require.NotEmpty(t, h.Kernel)
		require.NotEmpty(t, h.Filesystem)
		require.Positive(t, h.MemoryBytes)
	}
	text, err := json.Marshal(h)
	require.NoError(t, err)
	var again Host
	require.NoError(t, json.Unmarshal(text, &again))
	require.Equal(t, h, again)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
	_, err = DescribeEngine("", nil, dir+"/missing")
	require.Error(t, err)
}

func TestRevisionFromBuild(t *testing.T) {
	own := &debug.BuildInfo{
		Main:     debug.Module{Path: modulePath},
		Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "true"}},
	}
	node := &debug.BuildInfo{
		Main:     debug.Module{Path: "example.com/node"},
		Deps:     []*debug.Module{{Path: modulePath, Version: "v1.2.3"}},
		Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "the node's"}},
	}
	var r Revision
	r.fromBuild(own)
	require.Equal(t, Revision{Commit: "abc", Modified: true}, r)
	r = Revision{}
	r.fromBuild(node)
	require.Equal(t, Revision{Commit: "v1.2.3"}, r)
}

func TestReadRevisionKnowsGo(t *testing.T) {
	require.Equal(t, runtime.Version(), ReadRevision().Go)
}
