package duckdb

import (
	"strings"

	duckdb "github.com/duckdb/duckdb-go/v2"

	"github.com/varvedb/varve/internal/sqlstore"
)

// codec binds a Uint as the engine's own unsigned integer. Bound plainly, it
// would pass through database/sql, which refuses uint64 above 2⁶³−1.
type codec struct{ sqlstore.Native }

// Encode implements sqlstore.Codec.
func (codec) Encode(arg any) any {
	switch v := arg.(type) {
	case uint64:
		return duckdb.Typed(v, duckdb.TYPE_UBIGINT)
	case []byte:
		// The driver hands the address itself to C, which the runtime forbids
		// for bytes inside a Go object that holds pointers.
		return append(make([]byte, 0, len(v)), v...)
	}
	return arg
}

// quote returns a name as an SQL identifier.
func quote(name string) string {
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
}
