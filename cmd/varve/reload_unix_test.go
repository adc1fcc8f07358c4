//go:build unix

package main

import (
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
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/cli"
	"github.com/varvedb/varve/internal/cli/clitest"
)

// certificate writes a self-signed certificate with a serial number.
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

// TestReload: SIGHUP does not end a service. From then on new connections get the new
// certificate, new requests need the new token and new payloads the new key. When one of the
// files is wrong, all is as it was. Other signals end it.
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
	self, err := os.Executable()
	require.NoError(t, err)
	var out, errs clitest.Output
	cmd := exec.Command(self, "serve", at, "--listen=127.0.0.1:0", "--grpc=off", "--key-file", filepath.Join(dir, "keys"),
		"--token-file", filepath.Join(dir, "token"), "--tls-cert", filepath.Join(dir, "cert"), "--tls-key", filepath.Join(dir, "key"))
	cmd.Env = append(os.Environ(), clitest.AsCommand+"=1")
	cmd.Stdout, cmd.Stderr = &out, &errs
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // where the test failed
	require.Eventually(t, func() bool { return strings.Contains(out.String(), "REST on") }, time.Minute, 5*time.Millisecond, &errs)
	rest := regexp.MustCompile(`REST on (\S+),`).FindStringSubmatch(out.String())[1]

	// put writes an entity over a new connection, and returns the status and
	// the serial number of the certificate.
	put := func(n int, token string) [2]int64 {
		t.Helper()
		client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
		r, err := http.NewRequest(http.MethodPut, fmt.Sprintf("https://%s/v1/entities/0x%064x/payload", rest, n), strings.NewReader("hello"))
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", "text/plain")
		answer, err := client.Do(r)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		return [2]int64{int64(answer.StatusCode), answer.TLS.PeerCertificates[0].SerialNumber.Int64()}
	}
	hangUp := func(want string) {
		t.Helper()
		before := strings.Count(errs.String(), want)
		require.NoError(t, cmd.Process.Signal(syscall.SIGHUP))
		require.Eventually(t, func() bool { return strings.Count(errs.String(), want) > before }, time.Minute, 5*time.Millisecond, &errs)
	}
	require.Equal(t, [2]int64{http.StatusCreated, 1}, put(1, first))
	certificate(t, dir, 2)
	write("token", second)
	for _, bad := range []string{"no key", key2} { // the stored payloads need another key
		write("keys", bad)
		hangUp("reload failed, nothing was changed")
		require.Equal(t, [2]int64{http.StatusOK, 1}, put(1, first))
	}
	write("keys", key1+key2)
	hangUp("reloaded keys, token and certificate")
	require.Equal(t, [2]int64{http.StatusUnauthorized, 2}, put(3, first))
	require.Equal(t, [2]int64{http.StatusCreated, 2}, put(3, second))
	require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
	require.NoError(t, cmd.Wait(), &errs)

	write("keys", key1) // the newest payload is under the new key
	_, said, refused := varve(t, "serve", at, "--key-file", filepath.Join(dir, "keys"))
	require.Equal(t, cli.ExitError, refused)
	require.Contains(t, said, "key")
}
