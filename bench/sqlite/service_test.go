package sqlite_test

import (
	"testing"

	"github.com/varvedb/varve/bench/gobench"
)

func BenchmarkService(b *testing.B) { gobench.RunService(b, suite) }
