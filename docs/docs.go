// Package docs is the documents of this directory, which "varve help" prints.
package docs

import "embed"

// FS has the documents as they lie here, without those below.
//
//go:embed *.md
var FS embed.FS
