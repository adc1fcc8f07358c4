package pgembed

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// serviceName is the section of the server in its service file.
const serviceName = "varve"

// servicePath is the path of the server's service file, in the format of
// PostgreSQL's clients.
func (c Config) servicePath() string { return filepath.Join(c.Dir, "service.conf") }

// writeService writes the file with everything that psql needs. The directory
// may belong to another user, so an existing file or link is replaced and not
// followed.
func writeService(path, socketDir string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "[%s]\nhost=%s\nport=%s\nuser=%s\ndbname=%s\n", serviceName, socketDir, socketPort, User, Database)
	return errors.Join(err, f.Close())
}

// connString returns a connection string in the keyword form of pgx. It sets
// everything that pgx would otherwise take from the environment, or from files
// in the home directory. It even names a service, because that is the only way
// to override a service named in the environment.
func connString(socketDir, servicePath string) string {
	var text []string
	for _, s := range [][2]string{
		{"service", serviceName}, {"servicefile", servicePath},
		{"host", socketDir}, {"port", socketPort}, {"user", User}, {"database", Database},
		{"password", ""}, {"passfile", ""}, {"require_auth", ""}, {"channel_binding", "disable"},
		{"connect_timeout", "10"}, {"target_session_attrs", "any"},
		{"min_protocol_version", "3.0"}, {"max_protocol_version", "3.0"},
		{"sslmode", "disable"}, {"sslcertmode", "disable"}, {"sslnegotiation", "postgres"}, {"sslsni", "0"},
		{"sslcert", ""}, {"sslkey", ""}, {"sslrootcert", ""}, {"sslpassword", ""},
	} {
		text = append(text, s[0]+"='"+strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s[1])+"'")
	}
	return strings.Join(text, " ")
}
