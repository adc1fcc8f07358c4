package duckdb

import (
	"fmt"
	"strings"

	duckdb "github.com/duckdb/duckdb-go/v2"
)

// codec binds a Uint as the engine's own unsigned integer. Bound plainly, it
// would pass through database/sql, which refuses uint64 above 2⁶³−1.
type codec struct{}

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

// DecodeUint implements sqlstore.Codec.
func (codec) DecodeUint(src any) (uint64, error) {
	switch v := src.(type) {
	case uint64:
		return v, nil
	case int64:
		if v >= 0 {
			return uint64(v), nil
		}
	}
	return 0, fmt.Errorf("not an unsigned integer: %T %v", src, src)
}

// Rebind implements sqlstore.Codec.
func (codec) Rebind(sql string) string { return sql }

// quote returns a name as an SQL identifier.
func quote(name string) string {
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
}
