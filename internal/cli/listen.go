package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/varvedb/varve/internal/service"
	"github.com/varvedb/varve/internal/service/server"
	"github.com/varvedb/varve/node/rpc"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

// listenFlags configure who may send requests to this process, and the time
// limits.
type listenFlags struct {
	TokenFile string `help:"File of the token that clients send; by default the token is $VARVE_TOKEN." type:"existingfile" placeholder:"FILE"`
	TLSCert   string `name:"tls-cert" help:"File of the certificate, PEM." type:"existingfile" placeholder:"FILE"`
	TLSKey    string `name:"tls-key" help:"File of the certificate's key, PEM." type:"existingfile" placeholder:"FILE"`

	Host []string `sep:"none" help:"Name by which clients may reach this service without a token, in addition to localhost and loopback addresses, such as the name of a proxy on this machine. May be given several times." placeholder:"NAME"`

	AccessLog     bool   `help:"Log each request."`
	Concurrent    int    `min:"1" max:"1000000" help:"Requests at a time; more are refused." default:"1024"`
	RequestMemory string `help:"Memory for requests and answers at a time, of each interface." default:"16MiB"`

	HeaderTimeout time.Duration `min:"1ms" max:"24h" help:"Time for a client to send the head of a request." default:"5s"`
	ReadTimeout   time.Duration `min:"1ms" max:"24h" help:"Time for a client to send a request." default:"20s"`
	WriteTimeout  time.Duration `min:"1ms" max:"24h" help:"Time for a client to take the answer, or a part of a stream." default:"20s"`
	IdleTimeout   time.Duration `min:"1ms" max:"24h" help:"Time between requests after which a connection is closed." default:"2m"`
	Drain         time.Duration `min:"0s" max:"24h" help:"Time for requests under way when the service ends." default:"15s"`

	current atomic.Pointer[tls.Certificate] // that new connections get
	token   string                          // to begin with
}

// options reads the files that the flags name. It opens no port.
func (f *listenFlags) options(e *env) (o server.Options, err error) {
	o = server.Options{
		REST: "off", GRPC: "off",
		Hosts:    f.Host,
		Limits:   service.GateOptions{Concurrent: f.Concurrent},
		Timeouts: service.Timeouts{Header: f.HeaderTimeout, Read: f.ReadTimeout, Write: f.WriteTimeout, Idle: f.IdleTimeout, Drain: f.Drain},
		Log:      slog.New(slog.NewTextHandler(e.stderr, nil)), Traces: true,
	}
	if o.Limits.Memory, err = driver.ParseBytes(f.RequestMemory); err != nil || o.Limits.Memory < 1<<20 {
		return o, fmt.Errorf("--request-memory: want a number of bytes such as 16MiB, at least 1MiB, got %q", f.RequestMemory)
	}
	if f.AccessLog {
		o.Access = o.Log
	}
	if o.Token, err = secret(f.TokenFile, tokenVariable); err != nil {
		return o, err
	}
	f.token = o.Token
	certificate, err := f.certificate()
	if certificate != nil {
		f.current.Store(certificate)
		o.TLS = &tls.Config{
			MinVersion:     tls.VersionTLS12,
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return f.current.Load(), nil },
		}
	}
	return o, err
}

// certificate reads the certificate; nil when there is none.
func (f *listenFlags) certificate() (*tls.Certificate, error) {
	if f.TLSCert == "" && f.TLSKey == "" {
		return nil, nil
	}
	if f.TLSCert == "" || f.TLSKey == "" {
		return nil, errors.New("--tls-cert and --tls-key: give both of them")
	}
	public, err := os.ReadFile(f.TLSCert)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert: %w", err)
	}
	key, err := readSecret(f.TLSKey)
	if err != nil {
		return nil, fmt.Errorf("--tls-key: %w", err)
	}
	certificate, err := tls.X509KeyPair(public, key)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert %s, --tls-key %s: %w", f.TLSCert, f.TLSKey, err)
	}
	return &certificate, nil
}

// arkivFlags configure who may call Arkiv's JSON-RPC.
type arkivFlags struct {
	Public bool     `help:"Serve Arkiv's JSON-RPC without a token to every client that reaches its address."`
	Origin []string `help:"Web page that may call, such as https://example.com; * for any. May be given several times." placeholder:"ORIGIN"`
}

// add adds Arkiv's JSON-RPC to a server, on a site whose address and metrics
// the caller gives. The server closes it.
func (f *arkivFlags) add(ctx context.Context, o *server.Options, s server.Site, ents *store.Entities, r rpc.Options) error {
	r.Origins, r.Log, r.Access = f.Origin, o.Log, o.Access
	r.Limits = rpc.Limits{Concurrent: o.Limits.Concurrent, Memory: o.Limits.Memory, Receive: o.Timeouts.Read, Send: o.Timeouts.Write}
	handler, err := rpc.New(ctx, ents, r)
	if err != nil {
		return fmt.Errorf("arkiv: %w", err)
	}
	s.Name, s.Handler, s.Public = "Arkiv", handler, f.Public
	o.Site = &s
	return nil
}
