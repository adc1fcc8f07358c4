package query

// The limits of a query. Parse and Check hold to the same ones, so that what
// one accepts the other does, and layouts may rely on them: compiling a tree
// needs no stack, memory or bind parameters beyond what these allow.
const (
	// MaxLength bounds a query in bytes, both the text given to Parse and the
	// tree's printed form.
	MaxLength = 64 << 10

	// MaxDepth bounds the height of a tree, a single comparison being 1, and
	// the nesting of parentheses and negations in the text.
	MaxDepth = 200

	// MaxNodes bounds the nodes of a tree. The values of a list are not nodes.
	MaxNodes = 10_000

	// MaxList bounds the values of one list.
	MaxList = 10_000

	// MaxPattern bounds a glob pattern in bytes. SQLite refuses patterns above
	// 50,000 bytes, and RE2 those whose program outgrows its memory.
	MaxPattern = 4 << 10
)
