package libsql_test

import (
	"flag"
	"testing"

	"github.com/varvedb/varve/bench/social"
)

var socialFlags = social.RegisterFlags(flag.CommandLine)

func TestSocial(t *testing.T)      { social.RunTest(t, suite.Engine) }
func BenchmarkSocial(b *testing.B) { social.RunBenchmarks(b, suite.Engine, socialFlags) }
