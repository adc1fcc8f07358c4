package sqlite_test

import (
	"flag"
	"testing"

	"github.com/varvedb/varve/bench/serve"
)

func BenchmarkService(b *testing.B) {
	serve.Run(b, serve.Suite{
		Engine:     suite.Engine,
		Durability: func() string { return flag.Lookup("varve.durability").Value.String() },
		Layouts:    func() string { return flag.Lookup("varve.layouts").Value.String() },
	})
}
