package lint_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/lint"
)

// The tests in this file show that each rule finds forbidden code and passes
// allowed code.

func TestCheckLinks(t *testing.T) {
	text := []byte("[a](doc.go) [b](#here-1) [c](#a-bs-place) [d](https://example.com/#x)\n[e](gone.md) [f](#gone)\n# A `B`'s Place\n# Here\n# Here\n```\n# Gone\n[g](gone.md)\n```\n")
	require.Equal(t, []lint.Problem{{"./README.md", 2, "dead link gone.md"}, {"./README.md", 2, "no heading for #gone"}},
		lint.CheckLinks(".", "./README.md", text))
}

func TestCheckNames(t *testing.T) {
	tree, err := lint.NewTree([]string{"p/q/a.go", "d/b.md"}, map[string]string{"p/q/a.go": "package q\n\ntype A struct{ F int }\n\n" +
		"type B = x.B\n\ntype I interface{ M() }\n\nfunc (*A) N() {}\n\nvar V int\n\nfunc TestT() {}\n"})
	require.NoError(t, err)
	there := "`p/q` `./p/...` `p/q/a.go` `a.go` `q.A` `A.F` `A.N` `I.M` `B.Any` `q.V` `TestT` `x/y` `p/<engine>` `http.Handler` `q.A(x)`\n```\n`p/gone`\n```\n"
	require.Empty(t, tree.CheckNames("d/b.md", []byte(there)))
	for _, gone := range []string{"p/r", "p/q/b.go", "b.go", "q.G", "A.G", "G.F", "I.F", "TestG"} {
		require.Equal(t, []lint.Problem{{"d/b.md", 2, "there is no " + gone}}, tree.CheckNames("d/b.md", []byte("\n`"+gone+"`")))
	}
	require.True(t, tree.Matches("TestT/x"))
	require.False(t, tree.Matches("TestG"))
}
