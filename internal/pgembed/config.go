// Package pgembed runs a private PostgreSQL server out of a directory: it fetches the server's
// binaries once, makes the data directory, starts the server as a child of this process, and stops
// it without leaving anything behind.
//
// # Files
//
//	Dir/data          the data directory, made by initdb on the first start
//	Dir/postgres.log  what the server said since its last start
//	Dir/lock          held (flock) while a process has the server started
//	Dir/socket        the directory of the server's socket, or a link to it
//	Dir/service.conf  how to connect, for psql
//
// The server listens on a Unix socket that only its owner may open, and on no TCP port. The
// environment has no say, neither in the server nor in connections to it. Nothing a user has is
// ever deleted: data of another major version is refused, not replaced.
//
// # No orphans
//
// The kernel ends the server when this process dies, however it dies. That is tied to the thread
// that started the server, so a goroutine keeps that thread until the server has gone. A server
// that still runs from a killed parent is recognised by its working directory and shut down by the
// next Start. Ended reports a server that ends by itself. It is not started again, because whoever
// has it open may remember commits that were not durable.
//
// # Root
//
// PostgreSQL refuses to run as root. For a root process whose directory belongs to another user,
// the server runs as that user; otherwise it runs in a user namespace in which root's files belong
// to an ordinary user. So does initdb for a user of whom the system knows no name.
package pgembed

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/varvedb/varve/store/driver"
)

// Version is the release of PostgreSQL that is downloaded when Config.BinDir is
// empty. Major is the required major version of data and binaries.
const (
	Version = "18.3.0"
	Major   = "18"
)

// User and Database are the server's superuser and the database created for it.
const (
	User     = "varve"
	Database = "varve"
)

// startTimeout bounds the time from the server's start until it accepts
// connections, including recovery after a crash. stopTimeout bounds the orderly
// shutdown, which writes all dirty pages; after that the server is stopped at
// once and recovers on its next start.
const (
	startTimeout = 2 * time.Minute
	stopTimeout  = time.Minute
)

// Config configures a server. Only Dir is required.
type Config struct {
	// Dir holds the data, the log and the lock. It is created when it does not
	// exist.
	Dir string

	// Settings are passed on the server's command line, so they apply to this
	// start only and override postgresql.conf. Settings for where the server
	// listens and where its files are cannot be given.
	Settings []driver.Setting

	// BinDir is the directory with an installed PostgreSQL's initdb and
	// postgres, of version Major. Empty means to download Version, once, into
	// "varve/postgres" in the user's cache directory, which several processes
	// may share.
	BinDir string
}

// reserved are the settings that this package sets.
var reserved = []string{
	"cluster_name", "config_file", "data_directory", "external_pid_file", "hba_file", "ident_file",
	"listen_addresses", "log_destination", "logging_collector", "port",
	"unix_socket_directories", "unix_socket_group", "unix_socket_permissions",
}

// check returns c with an absolute path, or an error that lists its faults.
func (c Config) check() (Config, error) {
	if c.Dir == "" {
		return c, errors.New("no directory given")
	}
	for _, s := range c.Settings {
		if err := checkSetting(s); err != nil {
			return c, err
		}
	}
	var err error
	c.Dir, err = filepath.Abs(c.Dir)
	return c, err
}

// checkSetting refuses a setting that would change the meaning of the command
// line. The server itself checks whether it knows the setting.
func checkSetting(s driver.Setting) error {
	if s.Name == "" || strings.ContainsAny(s.Name, "= \t\n") || strings.ContainsRune(s.Name+s.Value, 0) {
		return fmt.Errorf("setting %q is not of the form name=value", s.Name+"="+s.Value)
	}
	for _, name := range reserved {
		// Postgres reads "-" in names as "_" and ignores case.
		if strings.EqualFold(strings.ReplaceAll(s.Name, "-", "_"), name) {
			return fmt.Errorf("setting %q cannot be changed: an embedded server decides it", s.Name)
		}
	}
	return nil
}

func (c Config) dataDir() string { return filepath.Join(c.Dir, "data") }
func (c Config) logPath() string { return filepath.Join(c.Dir, "postgres.log") }
