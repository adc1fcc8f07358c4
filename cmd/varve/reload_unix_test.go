//go:build unix

package main

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/cli"
	"github.com/varvedb/varve/internal/cli/clitest"
)

// certificate writes a certificate of its own making with a serial number.
func certificate(t *testing.T, dir string, serial int64) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "cert"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
}

// TestReload: at a hang-up new connections get the new certificate, new requests need the new
// token and new payloads the new key, while a request under way goes on. When one of
// the files is wrong, all is as it was.
func TestReload(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	first, second := strings.Repeat("a", 20), strings.Repeat("b", 20)
	key1, key2 := strings.Repeat("01", 32)+"\n", strings.Repeat("02", 32)+"\n"
	certificate(t, dir, 1)
	write("token", first)
	write("keys", key1)
	at := url(t, "s.db")
	var out, errs output
	ctx, cancel := context.WithCancel(t.Context())
	code := make(chan int, 1)
	go func() {
		code <- cli.Run(ctx, []string{
			"serve", at, "--listen=127.0.0.1:0", "--grpc=127.0.0.1:0", "--key-file", filepath.Join(dir, "keys"),
			"--token-file", filepath.Join(dir, "token"), "--tls-cert", filepath.Join(dir, "cert"), "--tls-key", filepath.Join(dir, "key"),
		}, &out, &errs)
	}()
	require.Eventually(t, func() bool { return strings.Contains(out.String(), "\n") || len(code) > 0 }, 20*time.Second, 5*time.Millisecond)
	listening := addresses.FindStringSubmatch(out.String())
	require.NotNil(t, listening, "%s%s", &out, &errs)

	dial := func(address, protocol string, serial int64) *tls.Conn {
		t.Helper()
		conn, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}})
		require.NoError(t, err)
		require.Equal(t, serial, conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64())
		return conn
	}
	// put begins a request, which the server has let in when it asks for the body, and returns
	// what ends it.
	put := func(n int, token string, serial int64) (end func() int) {
		t.Helper()
		conn := dial(listening[1], "http/1.1", serial)
		in := bufio.NewReader(conn)
		status := func() int {
			answer, err := http.ReadResponse(in, nil)
			require.NoError(t, err)
			require.NoError(t, answer.Body.Close())
			return answer.StatusCode
		}
		_, err := fmt.Fprintf(conn, "PUT /v1/entities/0x%064x/payload HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: text/plain\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n", n, token)
		require.NoError(t, err)
		first := status()
		return func() int {
			defer conn.Close()
			if first != http.StatusContinue {
				return first
			}
			_, err := conn.Write([]byte("hello"))
			require.NoError(t, err)
			return status()
		}
	}
	hangUp := func(want string) {
		t.Helper()
		before := strings.Count(errs.String(), want)
		require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGHUP))
		require.Eventually(t, func() bool { return strings.Count(errs.String(), want) > before }, 20*time.Second, 5*time.Millisecond, errs.String())
	}
	require.Equal(t, http.StatusCreated, put(1, first, 1)())
	underWay := put(2, first, 1)
	certificate(t, dir, 2)
	write("token", second)
	for _, bad := range []string{"no key", key2} { // what is stored is under another
		write("keys", bad)
		hangUp("reload: all is as it was")
		require.Equal(t, http.StatusOK, put(1, first, 1)())
	}
	write("keys", key1+key2)
	hangUp("reloaded keys, token and certificate")
	require.Equal(t, http.StatusCreated, underWay())
	require.Equal(t, http.StatusUnauthorized, put(3, first, 2)())
	require.Equal(t, http.StatusCreated, put(3, second, 2)())
	require.NoError(t, dial(listening[2], "h2", 2).Close())
	cancel()
	require.Zero(t, <-code, errs.String())

	write("keys", key1) // the newest payload is under the new key
	_, said, refused := varve(t, "serve", at, "--key-file", filepath.Join(dir, "keys"))
	require.Equal(t, cli.ExitError, refused)
	require.Contains(t, said, "key")
}

// TestHangUp: SIGHUP does not end a service, and other signals do.
func TestHangUp(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "keys"), []byte(strings.Repeat("01", 32)+"\n"), 0o600))
	self, err := os.Executable()
	require.NoError(t, err)
	var out, errs output
	cmd := exec.Command(self, "serve", url(t, "s.db"), "--listen=127.0.0.1:0", "--grpc=off", "--key-file", filepath.Join(dir, "keys"))
	cmd.Env = append(os.Environ(), clitest.AsCommand+"=1")
	cmd.Stdout, cmd.Stderr = &out, &errs
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // where the test failed
	require.Eventually(t, func() bool { return strings.Contains(out.String(), "REST on") }, 20*time.Second, 5*time.Millisecond, &errs)
	for n := 1; n <= 2; n++ {
		require.NoError(t, cmd.Process.Signal(syscall.SIGHUP))
		require.Eventually(t, func() bool { return strings.Count(errs.String(), "reloaded keys") == n }, 20*time.Second, 5*time.Millisecond, &errs)
	}
	require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
	require.NoError(t, cmd.Wait(), &errs)
}
