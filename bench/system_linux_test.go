package bench

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFilesystem(t *testing.T) {
	require.Equal(t, "proc", filesystem("/proc"))
	require.Equal(t, "proc", filesystem("/proc/self/fd"))
	require.NotEmpty(t, filesystem("/"))
	require.Empty(t, filesystem("/missing"))
	require.Equal(t, "/mnt/a b", escapes.Replace(`/mnt/a\040b`))
}
