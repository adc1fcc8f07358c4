package postgres

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/pgtest"
	"github.com/varvedb/varve/store/driver"
)

// TestSharedMemory: the server reports full shared memory with the code of a
// full disk.
func TestSharedMemory(t *testing.T) {
	err := mapError(&pgconn.PgError{Code: "53100", File: "dsm_impl.c", Message: `could not resize shared memory segment "/PostgreSQL.1" to 1048576 bytes: No space left on device`})
	require.ErrorIs(t, err, driver.ErrMemory)
	require.NotErrorIs(t, err, driver.ErrDiskFull)
	require.ErrorContains(t, err, "/dev/shm")
}

func TestMapError(t *testing.T) {
	for _, c := range []struct {
		code string
		want error // nil: no sentinel
	}{
		{"23505", driver.ErrConflict}, // unique violation
		{"23502", driver.ErrConflict}, // not null violation
		{"23P01", driver.ErrConflict}, // exclusion violation
		{"40001", driver.ErrConflict}, // serialization failure
		{"40P01", driver.ErrConflict}, // deadlock
		{"55P03", driver.ErrLocked},
		{"53100", driver.ErrDiskFull},
		{"53200", driver.ErrMemory},
		{"25006", driver.ErrReadOnly},
		{"XX001", driver.ErrCorrupt},
		{"XX002", driver.ErrCorrupt},
		{"58P01", driver.ErrCorrupt},
		{"3D000", driver.ErrNotExist},
		{"22021", driver.ErrUnsupported},
		{"54000", driver.ErrUnsupported},
		{"0A000", driver.ErrUnsupported},
		{"08006", driver.ErrUnavailable},
		{"53300", driver.ErrUnavailable}, // too many connections
		{"57P01", driver.ErrUnavailable}, // the server stops
		{"57P02", driver.ErrUnavailable}, // it has crashed
		{"57P03", driver.ErrUnavailable}, // it starts
		// An error that prevents the check is not damage.
		{"42501", nil}, {"25P02", nil}, {"57014", nil}, {"57P04", nil}, {"58030", nil},
		{"28P01", nil}, {"42601", nil}, {"XX000", nil}, {"", nil},
	} {
		native := &pgconn.PgError{Code: c.code, Message: "the server's words"}
		got := mapError(fmt.Errorf("context: %w", native))
		require.ErrorContains(t, got, "the server's words")
		var cause *pgconn.PgError
		require.ErrorAs(t, got, &cause, c.code)
		for _, sentinel := range []error{
			driver.ErrConflict, driver.ErrLocked, driver.ErrDiskFull, driver.ErrReadOnly,
			driver.ErrCorrupt, driver.ErrNotExist, driver.ErrUnsupported, driver.ErrClosed,
			driver.ErrUnavailable, driver.ErrMemory,
		} {
			require.Equal(t, errors.Is(sentinel, c.want), errors.Is(got, sentinel), "%s: %v", c.code, sentinel)
		}
	}
	require.NotErrorIs(t, mapError(&pgconn.PgError{Code: "58P01", File: "dfmgr.c"}), driver.ErrCorrupt, "an extension's library")
	for _, code := range []string{"26000", "42P05"} {
		require.ErrorContains(t, mapError(&pgconn.PgError{Code: code}), "set its pool mode to session", code)
	}
	got := mapError(io.EOF)
	require.ErrorIs(t, got, io.EOF)
	require.ErrorIs(t, got, driver.ErrUnavailable)
}

func TestIsBroken(t *testing.T) {
	for _, err := range []error{
		&pgconn.PgError{Severity: "FATAL", Code: "57P01"},
		&pgconn.PgError{Severity: "PANIC", Code: "53100"},
		&pgconn.PgError{Severity: "ERROR", Code: "08006"},
		&pgconn.PgError{Severity: "ERROR", Code: "0A000", Routine: "RevalidateCachedQuery"},
		&net.OpError{Op: "read", Err: os.ErrDeadlineExceeded},
		fmt.Errorf("read: %w", io.ErrUnexpectedEOF), io.EOF, net.ErrClosed, pgconn.ErrConnClosed,
	} {
		require.True(t, isBroken(err), "%v", err)
	}
	for _, err := range []error{
		&pgconn.PgError{Severity: "ERROR", Code: "23505"},
		&pgconn.PgError{Severity: "ERROR", Code: "0A000"},
		&pgconn.PgError{Severity: "ERROR", Code: "57014"},
		errors.New("other"), context.DeadlineExceeded, context.Canceled,
	} {
		require.False(t, isBroken(err), "%v", err)
	}
}

func TestWithContext(t *testing.T) {
	done, cancel := context.WithCancel(t.Context())
	cancel()
	cancelled := &pgconn.PgError{Severity: "ERROR", Code: codeCancelled}
	conflict := &pgconn.PgError{Severity: "ERROR", Code: "23505"}
	require.NoError(t, withContext(done, nil))
	require.ErrorIs(t, withContext(done, cancelled), context.Canceled)
	require.ErrorIs(t, withContext(done, sqldriver.ErrBadConn), context.Canceled)
	require.Equal(t, error(conflict), withContext(done, conflict), "it failed for another reason")
	require.Equal(t, error(cancelled), withContext(t.Context(), cancelled), "somebody else cancelled it")
}

// TestConnectErrors: what people see when a URL is wrong.
func TestConnectErrors(t *testing.T) {
	url := pgtest.NewURL(t)
	_, err := openURL(pgtest.WithDatabase(t, url, "nowhere"), nil)
	require.ErrorIs(t, err, driver.ErrNotExist)
	require.ErrorContains(t, err, `database "nowhere" does not exist`)
	require.ErrorContains(t, err, "CREATE DATABASE")

	_, err = openURL("postgres://nobody:secret@"+url[len("postgres://varve@"):], nil)
	require.ErrorContains(t, err, `"nobody"`)
	require.ErrorContains(t, err, "pg_hba.conf")
	require.NotContains(t, err.Error(), "secret")

	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	require.NoError(t, l.Close())
	_, err = openURL("postgres://u:secret@"+address+"/db?sslmode=disable", nil)
	require.ErrorContains(t, err, address)
	require.ErrorContains(t, err, "connection refused")
	require.NotContains(t, err.Error(), "secret")

	_, err = openURL("postgres://u@/db?host="+t.TempDir(), nil)
	require.ErrorContains(t, err, "no such file")

	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = openContext(cancelled, url, nil)
	require.ErrorIs(t, err, context.Canceled)
}
