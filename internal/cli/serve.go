package cli

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/varvedb/varve/internal/service"
	"github.com/varvedb/varve/internal/service/seal"
	"github.com/varvedb/varve/internal/service/server"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
)

// The environment variables that hold secrets, which flags would show to
// everybody who lists the processes.
const (
	keysVariable  = "VARVE_KEYS"
	tokenVariable = "VARVE_TOKEN"
)

// serveCmd serves a store.
type serveCmd struct {
	URL      string `arg:"" store:"" help:"Store to serve; its only writer. It is made when it does not exist."`
	Layout   string `help:"Layout of a new store; compact takes writes fastest." default:""`
	ReadOnly bool   `help:"Only read, any store: one that a chain feeds, another process writes, or a standby. So does read_only=true in the URL."`
	Adopt    bool   `help:"Write a store that something else has fed so far, and which cannot be fed from there any more."`

	Listen string `help:"Address for REST; off for none. Others than this machine reach it only when it is not on loopback, which needs a token." default:"127.0.0.1:8080"`
	GRPC   string `help:"Address for gRPC; off for none." default:"127.0.0.1:8081"`

	arkivFlags

	KeyFile   string `help:"File of the keys that seal payloads, one a line in hex or base 64, 32 bytes each, the newest last. Else $VARVE_KEYS." type:"existingfile" placeholder:"FILE"`
	Plaintext bool   `help:"Store payloads as they come, without a key. Reading only needs neither."`
	TokenFile string `help:"File of the token that clients show. Else $VARVE_TOKEN." type:"existingfile" placeholder:"FILE"`
	TLSCert   string `name:"tls-cert" help:"File of the certificate, PEM." type:"existingfile" placeholder:"FILE"`
	TLSKey    string `name:"tls-key" help:"File of the certificate's key, PEM." type:"existingfile" placeholder:"FILE"`

	AccessLog bool `help:"Log each request."`

	Owner      string        `help:"Owner of new entities whose writer names none." default:"0x0000000000000000000000000000000000000000"`
	Cache      string        `help:"Memory of the cache of opened entities; off for none." default:"64MiB"`
	Window     time.Duration `help:"How long a block waits for further writes after its first." default:"0s"`
	MaxPayload string        `help:"Largest payload." default:"4MiB"`
	Concurrent int           `help:"Requests at a time; more are refused." default:"1024"`
	Rate       float64       `help:"Requests a second; more are refused. 0 for no limit." default:"0"`

	HeaderTimeout time.Duration `help:"Time for a client to send the head of a request." default:"5s"`
	ReadTimeout   time.Duration `help:"Time for a client to send a request." default:"30s"`
	WriteTimeout  time.Duration `help:"Time for a client to take the answer, or a part of a stream." default:"30s"`
	IdleTimeout   time.Duration `help:"Time between requests after which a connection is closed." default:"2m"`
	Drain         time.Duration `help:"Time for requests under way when the service ends." default:"15s"`

	tls   certificates
	token string // to begin with
}

// Run serves until it is interrupted.
func (c *serveCmd) Run(e *env) (err error) {
	core, listen, err := c.options()
	if err != nil {
		return usageError{err}
	}
	listen.Log = slog.New(slog.NewTextHandler(e.stderr, nil))
	if c.AccessLog {
		listen.Access = listen.Log
	}
	// Without indexes that are still to be made a store can be read as well.
	db, _, err := openEntities(e.ctx, c.URL, &store.Options{ReadOnly: c.reads()}, store.EntityOptions{Layout: c.Layout, DeferIndexes: c.reads()})
	if err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	s, err := service.New(e.ctx, db, core)
	if err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	defer s.Close() // after the server, which waits for its requests; before the store
	if !s.Leased() && !s.ReadOnly() {
		listen.Log.Warn("this engine has no lease: nothing keeps a second writer away from the store, and there must be none")
	}
	if listen.Arkiv, err = c.arkiv(e.ctx, db, s, listen); err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	if listen.Arkiv != nil {
		defer func() { err = errors.Join(err, listen.Arkiv.Handler.Close()) }()
	}
	srv, err := server.Listen(e.ctx, s, listen)
	if err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	defer c.reloads(e.ctx, s, srv, listen.Log)()
	fmt.Fprintf(e.stdout, "REST on %s, gRPC on %s, %spayloads %s, block %d%s\n",
		orNone(srv.REST()), orNone(srv.GRPC()), c.served(srv), c.sealing(s), s.Head(), c.only(s))
	return srv.Run(e.ctx)
}

func orNone(address string) string {
	if address == "" {
		return "no port"
	}
	return address
}

func (c *serveCmd) sealing(s *service.Service) string {
	if s.Sealed() {
		return "sealed"
	}
	return "in plain text"
}

func (c *serveCmd) only(s *service.Service) string {
	if s.ReadOnly() {
		return ", reading only"
	}
	return ""
}

// reads tells whether the flag or the URL says that nothing is to be written, or nothing is
// served by which it could be.
func (c *serveCmd) reads() bool {
	if c.ReadOnly || c.Listen == "off" && c.GRPC == "off" {
		return true
	}
	u, err := url.Parse(c.URL)
	if err != nil {
		return false // and an error of opening it
	}
	only, err := strconv.ParseBool(u.Query().Get("read_only"))
	return only && err == nil
}

// options reads what the flags name.
func (c *serveCmd) options() (core service.Options, listen server.Options, err error) {
	if core.Adopt = c.Adopt; c.Adopt && c.reads() {
		return core, listen, errors.New("--adopt and --read-only: give one of them")
	}
	if core.Keys, err = c.keys(); err != nil {
		return core, listen, err
	}
	if core.Owner, err = entity.ParseAddress(c.Owner); err != nil {
		return core, listen, fmt.Errorf("--owner: %w", err)
	}
	if err := c.check(core.Keys != nil); err != nil {
		return core, listen, err
	}
	if c.Listen == "off" && c.GRPC == "off" && c.Arkiv == "off" {
		return core, listen, errors.New("--listen, --grpc and --arkiv are off: nothing is served")
	}
	core.CacheBytes = -1
	if c.Cache != "off" {
		if core.CacheBytes, err = store.ParseBytes(c.Cache); err != nil {
			return core, listen, fmt.Errorf("--cache: %w", err)
		}
	}
	largest, err := store.ParseBytes(c.MaxPayload)
	if err != nil || largest > 1<<30 {
		return core, listen, errors.Join(fmt.Errorf("--max-payload %s: want at most 1GiB", c.MaxPayload), err)
	}
	core.MaxPayload, core.Window = int(largest), c.Window
	listen = server.Options{
		REST: c.Listen, GRPC: c.GRPC,
		Limits: server.Limits{Concurrent: c.Concurrent, PerSecond: c.Rate},
		Timeouts: server.Timeouts{
			Header: c.HeaderTimeout, Read: c.ReadTimeout, Write: c.WriteTimeout, Idle: c.IdleTimeout, Drain: c.Drain,
		},
	}
	if listen.Token, err = secret(c.TokenFile, tokenVariable); err != nil {
		return core, listen, err
	}
	c.token = listen.Token
	certificate, err := c.certificate()
	if certificate != nil {
		listen.TLS = c.tls.config(certificate)
	}
	return core, listen, err
}

// keys reads the keyring. Without one, plain text must have been asked for.
func (c *serveCmd) keys() (*seal.Keyring, error) {
	text, err := secret(c.KeyFile, keysVariable)
	switch {
	case err != nil:
		return nil, err
	case text == "" && (c.Plaintext || c.reads()):
		return nil, nil
	case text == "":
		return nil, fmt.Errorf("no key to seal payloads: give --key-file (make one with: openssl rand -hex 32) or $%s, or say --plaintext", keysVariable)
	case c.Plaintext:
		return nil, errors.New("--plaintext and keys: give one of them")
	}
	return seal.Parse(text)
}

// secret reads a file, or an environment variable when there is no file.
func secret(file, variable string) (string, error) {
	if file == "" {
		return strings.TrimSpace(os.Getenv(variable)), nil
	}
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if err := private(f); err != nil {
		return "", err
	}
	text, err := io.ReadAll(f)
	if err != nil {
		return "", err
	}
	if len(strings.TrimSpace(string(text))) == 0 {
		return "", fmt.Errorf("%s is empty", file)
	}
	return strings.TrimSpace(string(text)), nil
}

// private refuses a secret that the group or others may read or replace. What is
// no file, such as a pipe of the shell, is as private as its maker made it; and
// systemd keeps its credentials private by other means, which show as rights of
// the group.
func private(f *os.File) error {
	st, err := f.Stat()
	if err != nil {
		return err
	}
	if dir := os.Getenv("CREDENTIALS_DIRECTORY"); dir != "" && filepath.Dir(f.Name()) == filepath.Clean(dir) {
		return nil
	}
	if open := st.Mode().Perm() & 0o077; open != 0 && st.Mode().IsRegular() && runtime.GOOS != "windows" {
		return fmt.Errorf("%s: others may use it (mode %04o): chmod 600 %s", f.Name(), st.Mode().Perm(), f.Name())
	}
	return nil
}

// certificate reads the certificate, nil when there is none.
func (c *serveCmd) certificate() (*tls.Certificate, error) {
	if c.TLSCert == "" && c.TLSKey == "" {
		return nil, nil
	}
	if c.TLSCert == "" || c.TLSKey == "" {
		return nil, errors.New("--tls-cert and --tls-key belong together")
	}
	certificate, err := tls.LoadX509KeyPair(c.TLSCert, c.TLSKey)
	if err != nil {
		return nil, fmt.Errorf("certificate: %w", err)
	}
	return &certificate, nil
}
