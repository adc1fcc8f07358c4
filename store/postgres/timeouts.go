package postgres

import "fmt"

// What ends work that takes long, and may be set for a role or the whole server. The last
// one came with Postgres 17.
const timeouts = "ARRAY['statement_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout']"

// liftTimeouts lifts them for the rest of a transaction.
var liftTimeouts = lift(true)

func lift(local bool) string {
	return fmt.Sprintf("SELECT set_config(name, '0', %t) FROM unnest(%s) AS name WHERE current_setting(name, true) <> '0'", local, timeouts)
}
