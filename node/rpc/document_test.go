package rpc

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDocument: docs/arkiv-node.md has every method and every code, and no others.
func TestDocument(t *testing.T) {
	text, err := os.ReadFile("../../docs/arkiv-node.md")
	require.NoError(t, err)
	var there []string
	for name := range methods() {
		there = append(there, name)
	}
	answered, _, _ := strings.Cut(string(text), "\nAny other method")
	var listed []string
	for _, m := range regexp.MustCompile("`((?:arkiv|eth|net|web3)_\\w+)`").FindAllStringSubmatch(answered, -1) {
		listed = append(listed, m[1])
	}
	require.ElementsMatch(t, there, listed)

	source, err := os.ReadFile("error.go")
	require.NoError(t, err)
	_, section, _ := strings.Cut(string(text), "\n## Errors\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for _, m := range regexp.MustCompile(`= -(32\d{3})`).FindAllSubmatch(source, -1) {
		require.Contains(t, section, fmt.Sprintf("−%s", m[1]))
	}
	require.Equal(t, strings.Count(string(source), "= -32"), strings.Count(section, "−32"))
}
