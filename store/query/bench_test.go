package query_test

import (
	"strings"
	"testing"

	"github.com/varvedb/varve/store/query"
)

func BenchmarkParse(b *testing.B) {
	clause := `(status = "pending" || status = "offline")`
	for _, c := range []struct{ name, src string }{
		{"equal", `type = "node"`},
		{"range", `type = "node" && cpu_count >= 8 && ram_gb >= 32 && price_hour < 200`},
		{"or16", strings.Repeat(clause+" && ", 15) + clause},
		{"in1000", "n in (" + strings.Repeat("12345 ", 1000) + ")"},
	} {
		b.Run("query="+c.name, func(b *testing.B) {
			b.SetBytes(int64(len(c.src)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := query.Parse(c.src); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
