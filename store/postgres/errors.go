package postgres

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/varvedb/varve/store/driver"
)

// meaning is the translation of a code of the server: a sentinel of the
// contract, or advice where the server's message has none, or both.
type meaning struct {
	sentinel error
	advice   string
}

// meanings are by code, or by class (the first two characters) for the codes
// that are not there; see
// https://www.postgresql.org/docs/18/errcodes-appendix.html.
var meanings = map[string]meaning{
	"23":    {sentinel: driver.ErrConflict}, // a constraint
	"40":    {sentinel: driver.ErrConflict}, // serialization failure, deadlock
	"55P03": {sentinel: driver.ErrLocked},   // lock_timeout
	"53100": {sentinel: driver.ErrDiskFull},
	"53200": {sentinel: driver.ErrMemory},
	"25006": {sentinel: driver.ErrReadOnly},
	"XX001": {driver.ErrCorrupt, "see the server's log"},                 // a page
	"XX002": {driver.ErrCorrupt, "REINDEX mends an index"},               // an index
	"58P01": {driver.ErrCorrupt, "see the server's log"},                 // a file is missing
	"3D000": {driver.ErrNotExist, "make it with CREATE DATABASE"},        // database
	"22021": {driver.ErrUnsupported, "text is UTF-8 without U+0000"},     // character not in repertoire
	"54":    {driver.ErrUnsupported, "see the engine's gap long-values"}, // a limit
	"0A":    {sentinel: driver.ErrUnsupported},
	"42501": {advice: "GRANT this user what it lacks, or connect as the owner"},
	"28":    {advice: "check the user, the password and the server's pg_hba.conf"},
	"08":    {sentinel: driver.ErrUnavailable}, // the connection
	"57P01": {sentinel: driver.ErrUnavailable}, // the server stops
	"57P02": {sentinel: driver.ErrUnavailable}, // it stopped at once
	"53300": {driver.ErrUnavailable, "use fewer readers or raise the server's max_connections"},
	"57P03": {driver.ErrUnavailable, "the server is starting or recovering; try again"},
	"26000": {advice: poolerAdvice}, // no such prepared statement
	"42P05": {advice: poolerAdvice}, // another of the same name
	"25P02": {advice: "an earlier statement failed; roll back, or close the snapshot"},
}

// poolerAdvice is for what only a pooler causes that passes itself off as the server:
// see behindPooler.
const poolerAdvice = "a pooler between gives each transaction another session; set its pool mode to session, or connect to the server itself"

// codeCancelled is the code of a statement that was cancelled on request.
const codeCancelled = "57014"

// mapError joins the server's errors with the contract's sentinels.
func mapError(err error) error {
	var native *pgconn.PgError
	if !errors.As(err, &native) || len(native.Code) < 2 {
		if isBroken(err) && !errors.Is(err, driver.ErrUnavailable) {
			err = fmt.Errorf("%w: %w", driver.ErrUnavailable, err)
		}
		return err
	}
	if stalePlan(native) {
		return fmt.Errorf("%w: a table was changed under a prepared statement; begin again: %w", driver.ErrConflict, err)
	}
	if native.Code == "58P01" && native.File == "dfmgr.c" {
		return err // the library of an extension is missing, and no file of the database
	}
	if native.Code == "53100" && native.File == "dsm_impl.c" { // whose disk is memory
		return fmt.Errorf("%w: the server's shared memory, /dev/shm, is full; give it more, as with docker's --shm-size: %w", driver.ErrMemory, err)
	}
	m, ok := meanings[native.Code]
	if !ok {
		m = meanings[native.Code[:2]]
	}
	if m.advice != "" {
		err = fmt.Errorf("%w; %s", err, m.advice)
	}
	if m.sentinel != nil && !errors.Is(err, m.sentinel) {
		err = fmt.Errorf("%w: %w", m.sentinel, err)
	}
	return err
}

// stalePlan reports whether the server refuses a prepared statement because a
// table no longer has the columns it was prepared for.
func stalePlan(err *pgconn.PgError) bool {
	return err.Code == "0A000" && err.Routine == "RevalidateCachedQuery"
}

// isBroken implements sqlstore.Config.IsBroken. A stale plan counts, although
// the connection works: a new connection prepares its statements again.
func isBroken(err error) bool {
	// Guarded returns it as it is when it has sent nothing; one that wraps it is of the connection.
	if err == context.DeadlineExceeded { //nolint:errorlint // see above
		return false
	}
	var native *pgconn.PgError
	if errors.As(err, &native) {
		return native.Severity == "FATAL" || native.Severity == "PANIC" ||
			strings.HasPrefix(native.Code, "08") || stalePlan(native)
	}
	var network net.Error
	return errors.As(err, &network) || pgconn.Timeout(err) ||
		errors.Is(err, pgconn.ErrConnClosed) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// withContext joins an error with that of the context which caused it: the
// server says only that the statement was cancelled, or the connection was
// given up for it.
func withContext(ctx context.Context, err error) error {
	cause := ctx.Err()
	if err == nil || cause == nil || errors.Is(err, cause) {
		return err
	}
	var native *pgconn.PgError
	cancelled := errors.As(err, &native) && native.Code == codeCancelled
	if cancelled || errors.Is(err, sqldriver.ErrBadConn) || isBroken(err) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}

// code returns the server's code of an error, or "".
func code(err error) string {
	var native *pgconn.PgError
	if errors.As(err, &native) {
		return native.Code
	}
	return ""
}
