package bench

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseMount(t *testing.T) {
	point, kind, ok := parseMount(`36 35 98:0 /mnt1 /mnt/a\040b rw,noatime master:1 - ext3 /dev/root rw,errors=continue`)
	require.True(t, ok)
	require.Equal(t, "/mnt/a b", point)
	require.Equal(t, "ext3", kind)
	for _, line := range []string{"", "1 2 3", "1 2 3 4 5", "1 2 3 - ext4"} {
		_, _, ok := parseMount(line)
		require.False(t, ok, line)
	}
	require.True(t, within("/a/b", "/a"))
	require.False(t, within("/ab", "/a"))
	require.Equal(t, "proc", filesystem("/proc"))
}
