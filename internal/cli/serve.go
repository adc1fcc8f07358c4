package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/varvedb/varve/internal/service"
	"github.com/varvedb/varve/internal/service/seal"
	"github.com/varvedb/varve/internal/service/server"
	"github.com/varvedb/varve/node/rpc"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
	"github.com/varvedb/varve/store/entity"
)

// Environment variables for secrets. A flag would show a secret to every user
// who can list processes.
const (
	keysVariable  = "VARVE_KEYS"
	tokenVariable = "VARVE_TOKEN"
)

// serveCmd serves a store.
type serveCmd struct {
	URL      string `arg:"" store:"" help:"Store to serve; its only writer. It is made when it does not exist."`
	Layout   string `help:"Layout of a new store, ${layout} when neither this nor the URL names one." default:""`
	ReadOnly bool   `help:"Only read. A chain or another process may write the store, or it may be a standby. read_only=true in the URL does the same."`
	Adopt    bool   `help:"Write to a store that an import or a chain has filled. It can then no longer be filled from there."`

	Listen string `help:"Address for REST; off for none. Other machines reach it only at an address that is not loopback, which needs a token." default:"127.0.0.1:8080"`
	GRPC   string `help:"Address for gRPC; off for none." default:"127.0.0.1:8081"`

	UI bool `name:"ui" help:"Serve a page at /ui, with REST, that shows the store."`

	Arkiv     string        `help:"Address for Arkiv's JSON-RPC over HTTP and WebSocket, such as 127.0.0.1:8555; off for none. It only reads." default:"off"`
	JSONRPC   arkivFlags    `embed:"" prefix:"arkiv-"`
	ChainID   uint64        `any:"" name:"chain-id" help:"Chain id that Arkiv's JSON-RPC answers. By default the id that the store has recorded, or 1337. An id that differs from the recorded one is refused." default:"0"`
	BlockTime time.Duration `min:"1ms" max:"24h" help:"Time from one block of the chain to the next." default:"2s"`

	KeyFile   string `help:"File of the keys that seal payloads, one a line in hex or base 64, 32 bytes each, the newest last; by default the keys are $VARVE_KEYS." type:"existingfile" placeholder:"FILE"`
	Plaintext bool   `help:"Store payloads unencrypted, without a key. With --read-only neither is needed."`

	listenFlags

	Owner      string        `help:"Owner of new entities whose writer names none." default:"0x0000000000000000000000000000000000000000"`
	Cache      string        `help:"Memory of the cache of opened entities; off for none." default:"64MiB"`
	Window     time.Duration `min:"0s" max:"1m" help:"How long a block waits for further writes after its first." default:"0s"`
	MaxPayload string        `help:"Largest payload. The rest of an entity may have 64KiB more: in all 4MiB, which every client of gRPC accepts." default:"4032KiB"`
	Rate       float64       `min:"0" max:"10000000" help:"Requests a second; more are refused. 0 for no limit." default:"0"`

	Subscriptions int           `min:"1" max:"1000000" help:"Clients at a time that follow the events; more are refused." default:"256"`
	QueryTimeout  time.Duration `min:"1ms" max:"24h" help:"Time that the store may work for a request. Sending the answer does not count." default:"30s"`
}

// Run serves until it is interrupted.
func (c *serveCmd) Run(e *env) (err error) {
	// Open the store.
	core, listen, err := c.options(e)
	if err != nil {
		return usageError{err}
	}
	// A store whose indexes are not built yet can still be read, so do not
	// build them.
	db, _, err := e.openEntities(c.URL, &store.Options{ReadOnly: c.reads()}, store.EntityOptions{Layout: c.Layout, DeferIndexes: c.reads()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	defer e.endWith(db)()

	// Start the service, and where it listens.
	s, err := service.New(e.ctx, db, core)
	if err != nil {
		return err
	}
	defer s.Close() // runs after the server has finished its requests, and before the store closes
	if !s.Leased() && !s.ReadOnly() {
		listen.Log.Warn("this engine cannot keep a second writer away: see that no other process writes to the store")
	}
	listen.UI = c.UI
	if c.Arkiv != "off" {
		ents, err := db.Entities(e.ctx, &store.EntityOptions{DeferIndexes: db.ReadOnly()})
		if err != nil {
			return err
		}
		site := server.Site{Address: c.Arkiv, Metrics: s.Metrics().Handler()}
		id, err := chainID(e.ctx, ents, c.ChainID)
		if err != nil {
			return err
		}
		about := rpc.Options{ChainID: id, BlockTime: c.BlockTime, Metrics: s.Metrics().Registry()}
		if err := c.JSONRPC.add(e.ctx, &listen, site, ents, about); err != nil {
			return err
		}
	}
	srv, err := server.Listen(e.ctx, s, listen)
	if err != nil {
		return err
	}
	defer c.reloads(e.ctx, s, srv, listen.Log)()

	// Print the addresses, and serve.
	arkiv, payloads, only := "", "in plain text", ""
	if listen.Site != nil {
		arkiv = fmt.Sprintf("Arkiv on %s, ", srv.Site())
	}
	if s.Sealed() {
		payloads = "sealed"
	}
	if s.ReadOnly() {
		only = ", reading only"
	}
	fmt.Fprintf(e.stdout, "REST on %s, gRPC on %s, %spayloads %s, block %d%s\n",
		cmp.Or(srv.REST(), "no port"), cmp.Or(srv.GRPC(), "no port"), arkiv, payloads, s.Head(), only)
	if c.UI && srv.REST() != "" {
		scheme := "http"
		if listen.TLS != nil {
			scheme = "https"
		}
		fmt.Fprintf(e.stdout, "the page is %s://%s/ui\n", scheme, srv.REST())
	}
	return srv.Run(e.ctx)
}

// chainID returns the chain id of a store: the recorded one, which must equal
// the requested one if there is one. Zero means the clients' default.
func chainID(ctx context.Context, ents *store.Entities, asked uint64) (uint64, error) {
	chain, recorded, err := ents.Chain(ctx)
	switch {
	case err != nil || !recorded:
		return asked, err
	case asked != 0 && asked != chain.ID:
		return 0, fmt.Errorf("--chain-id %d: the store is of chain %d; leave the flag out", asked, chain.ID)
	}
	return chain.ID, nil
}

// reads reports whether the store is opened read-only: by flag or URL, or
// because no served interface can write.
func (c *serveCmd) reads() bool {
	if c.ReadOnly || c.Listen == "off" && c.GRPC == "off" {
		return true
	}
	u, err := driver.ParseURL(c.URL)
	if err != nil {
		return false // and an error of opening it
	}
	only, err := strconv.ParseBool(u.Query().Get("read_only"))
	return only && err == nil
}

// options reads the files that the flags name.
func (c *serveCmd) options(e *env) (core service.Options, listen server.Options, err error) {
	if core.Adopt = c.Adopt; c.Adopt && c.reads() {
		return core, listen, errors.New("--adopt and --read-only: give one of them")
	}
	if core.Keys, err = c.keys(); err != nil {
		return core, listen, err
	}
	if core.Owner, err = entity.ParseAddress(c.Owner); err != nil {
		return core, listen, fmt.Errorf("--owner: %w", err)
	}
	if c.Arkiv != "off" && core.Keys != nil {
		return core, listen, errors.New("--arkiv and keys: Arkiv's clients could read no payload, since all are sealed; give one of them")
	}
	if c.Listen == "off" && c.GRPC == "off" && c.Arkiv == "off" {
		return core, listen, errors.New("--listen, --grpc and --arkiv are off; give one of them an address")
	}
	core.CacheBytes = -1
	if c.Cache != "off" {
		if core.CacheBytes, err = driver.ParseBytes(c.Cache); err != nil {
			return core, listen, fmt.Errorf("--cache: %w", err)
		}
	}
	largest, err := driver.ParseBytes(c.MaxPayload)
	if err != nil || largest > 1<<30 {
		return core, listen, fmt.Errorf("--max-payload: want a number of bytes such as 256KiB, at most 1GiB, got %q", c.MaxPayload)
	}
	core.MaxPayload, core.Window, core.Work = int(largest), c.Window, c.QueryTimeout
	listen, err = c.listenFlags.options(e)
	listen.REST, listen.GRPC, listen.Limits.PerSecond, listen.Limits.Subscriptions = c.Listen, c.GRPC, c.Rate, c.Subscriptions
	listen.Timeouts.Work = c.QueryTimeout
	return core, listen, err
}

// keys reads the keyring. Without a keyring the user must have asked for plain
// text.
func (c *serveCmd) keys() (*seal.Keyring, error) {
	text, err := secret(c.KeyFile, keysVariable)
	switch {
	case err != nil:
		return nil, err
	case text == "" && (c.Plaintext || c.reads()):
		return nil, nil
	case text == "":
		return nil, fmt.Errorf("no key to encrypt payloads with: give --key-file (make one with: openssl rand -hex 32) or $%s, or say --plaintext", keysVariable)
	case c.Plaintext:
		return nil, errors.New("--plaintext and keys: give one of them")
	}
	return seal.Parse(text)
}

// secret reads a secret from a file, or from an environment variable if no file
// is given.
func secret(file, variable string) (string, error) {
	if file == "" {
		return strings.TrimSpace(os.Getenv(variable)), nil
	}
	all, err := readSecret(file)
	text := strings.TrimSpace(string(all))
	if err == nil && text == "" {
		err = fmt.Errorf("%s is empty; make its content with: openssl rand -hex 32", file)
	}
	return text, err
}

// readSecret reads a file that must be private.
func readSecret(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := private(f); err != nil {
		return nil, err
	}
	return io.ReadAll(f)
}

// private refuses a secret file that other users may read or replace, by
// Postgres's rule. A user's file must be accessible to that user alone; a file
// of root may be readable by a group, as Kubernetes mounts secrets. Pipes and
// other non-files are accepted. Credentials of systemd are accepted too:
// systemd protects them by other means, which show up as group permissions.
func private(f *os.File) error {
	st, err := f.Stat()
	if err != nil {
		return err
	}
	if dir := os.Getenv("CREDENTIALS_DIRECTORY"); dir != "" && filepath.Dir(f.Name()) == filepath.Clean(dir) {
		return nil
	}
	others := os.FileMode(0o077)
	if ownedByRoot(st) {
		others = 0o037
	}
	if st.Mode().Perm()&others != 0 && st.Mode().IsRegular() && runtime.GOOS != "windows" {
		return fmt.Errorf("%s: other users may read or write it (mode %04o): chmod 600 %s; or make root its owner and chmod 640 it, so that a group may read it",
			f.Name(), st.Mode().Perm(), f.Name())
	}
	return nil
}
