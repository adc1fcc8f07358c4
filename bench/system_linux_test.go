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
}
