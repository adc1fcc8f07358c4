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
	"time"
)

const (
	// fetchTries and fetchPause are for temporary failures of servers and
	// networks.
	fetchTries = 3
	fetchPause = 500 * time.Millisecond
	// maxArchive bounds the size of an archive, in bytes; real ones are about
	// 15 MB.
	maxArchive = 128 << 20
)

// fetch downloads a file and checks its SHA-256.
func fetch(ctx context.Context, address, sum, path string) (err error) {
	for try := range fetchTries {
		if try > 0 {
			select {
			case <-ctx.Done():
				return err
			case <-time.After(fetchPause):
			}
		}
		var got string
		if got, err = download(ctx, address, path); err == nil && got != sum {
			return fmt.Errorf("%q has SHA-256 %s, want %s", address, got, sum)
		} else if err == nil {
			return nil
		}
	}
	return err
}

// download writes a file and returns its SHA-256.
func download(ctx context.Context, address, path string) (sum string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", err
	}
	req.Close = true // no other request follows
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%q: %s", address, resp.Status)
	}
	f, err := os.Create(path)
	if err != nil {
		return "", err
	}
	hash := sha256.New()
	_, err = io.Copy(io.MultiWriter(f, hash), http.MaxBytesReader(nil, resp.Body, maxArchive))
	return hex.EncodeToString(hash.Sum(nil)), errors.Join(err, f.Close())
}
