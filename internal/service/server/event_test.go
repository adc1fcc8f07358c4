package server_test

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/service"
	"github.com/varvedb/varve/internal/service/server"
	"github.com/varvedb/varve/store/event"
)

// TestQuietSubscription: the times that bound a request do not bound how long a subscription is
// silent, over either version of HTTP; and a server that goes down ends it at once.
func TestQuietSubscription(t *testing.T) {
	const short = 100 * time.Millisecond
	known := httptest.NewTLSServer(nil) // for its certificate
	known.Close()
	roots := x509.NewCertPool()
	roots.AddCert(known.Certificate())
	for _, version := range []int{1, 2} {
		w := run(t, service.Options{}, server.Options{
			TLS:      &tls.Config{Certificates: known.TLS.Certificates, MinVersion: tls.VersionTLS12},
			Timeouts: service.Timeouts{Header: short, Read: short, Write: short, Idle: short},
		})
		client := &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: version == 2, TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}}
		defer client.CloseIdleConnections()
		resp, err := client.Get("https://" + w.server.REST() + "/v1/events/subscribe")
		require.NoError(t, err)
		defer resp.Body.Close()
		require.Equal(t, version, resp.ProtoMajor)
		lines := bufio.NewScanner(resp.Body)
		for n := range 2 {
			time.Sleep(4 * short)
			_, err := w.service.Events().Append(t.Context(), []event.Event{{Type: "A", Data: []byte(fmt.Sprint(n))}}, nil)
			require.NoError(t, err)
			require.True(t, lines.Scan(), "%v", lines.Err())
			require.Contains(t, lines.Text(), fmt.Sprintf(`"data":%d`, n))
		}
		w.end(t) // the drain does not wait until its time is over
		require.True(t, lines.Scan(), "%v", lines.Err())
		require.Contains(t, lines.Text(), "urn:varve:problem:closing")
	}
}
