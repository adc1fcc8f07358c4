package libsql_test

import (
	"flag"
	"testing"

	"github.com/varvedb/varve/bench/gobench"
)

var socialFlags = gobench.RegisterSocialFlags(flag.CommandLine)

func TestSocial(t *testing.T)      { gobench.CheckSocial(t, suite.Engine) }
func BenchmarkSocial(b *testing.B) { gobench.RunSocial(b, suite.Engine, socialFlags) }
