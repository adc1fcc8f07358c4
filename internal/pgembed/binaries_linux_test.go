package pgembed

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/driver"
)

func TestFetch(t *testing.T) {
	sum := sha256.Sum256([]byte("content"))
	good := hex.EncodeToString(sum[:])
	failures := 1
	mux := http.NewServeMux()
	mux.HandleFunc("/good", func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("content")) })
	mux.HandleFunc("/cut", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		w.Write([]byte("content"))
	})
	mux.HandleFunc("/once", func(w http.ResponseWriter, _ *http.Request) {
		if failures--; failures >= 0 {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		w.Write([]byte("content"))
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	for name, tc := range map[string]struct{ path, sum, want string }{
		"good":        {"/good", good, ""},
		"other sum":   {"/good", strings.Repeat("0", 64), "SHA-256"},
		"none":        {"/none", good, "404"},
		"cut":         {"/cut", good, "EOF"},
		"fails first": {"/once", good, ""},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "file")
			err := fetch(t.Context(), server.URL+tc.path, tc.sum, path)
			if tc.want != "" {
				require.ErrorContains(t, err, tc.want)
				return
			}
			require.NoError(t, err)
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, "content", string(text))
		})
	}
}

// TestInstallOffline asks a server that is not there.
func TestInstallOffline(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	cache := useRepository(t, server.URL)
	_, err := Start(t.Context(), Config{Dir: t.TempDir()})
	require.ErrorContains(t, err, "connection refused")
	require.ErrorContains(t, err, "bin_dir")
	left, err := filepath.Glob(filepath.Join(cache, "*", "*", "*.part"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// useRepository makes an empty cache to be filled from a repository, for a test.
func useRepository(t *testing.T, address string) (cache string) {
	t.Helper()
	was := repository
	repository, cache = address, t.TempDir()
	t.Cleanup(func() { repository = was })
	t.Setenv("XDG_CACHE_HOME", cache)
	return cache
}

func TestInstallCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	}))
	defer server.Close()
	useRepository(t, server.URL)
	_, err := install(ctx)
	require.ErrorIs(t, err, context.Canceled)
}

// fakeRepository serves testdata/binaries.jar, which has the shape of the real
// archives, in place of this platform's, and counts how often it is asked.
func fakeRepository(t *testing.T) (fetched *int) {
	t.Helper()
	archive, err := os.ReadFile(filepath.Join("testdata", "binaries.jar"))
	require.NoError(t, err)
	digest := sha256.Sum256(archive)
	platform := platformName()
	pinned := sums[platform]
	sums[platform] = hex.EncodeToString(digest[:])
	t.Cleanup(func() { sums[platform] = pinned })
	fetched = new(int)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		*fetched++ // the lock of the cache guards it
		w.Write(archive)
	}))
	t.Cleanup(server.Close)
	useRepository(t, server.URL)
	return fetched
}

// TestInstallTogether has several callers fill one cache: one fetches.
func TestInstallTogether(t *testing.T) {
	fetched := fakeRepository(t)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			_, err := install(t.Context())
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.Equal(t, 1, *fetched)
	root, err := install(t.Context())
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(root, "lib", "liba.so"))
	require.NoError(t, err, "a link")
	require.Equal(t, "lib\n", string(text))
	require.NoDirExists(t, root+".part")
}

// TestInstallWithoutMarker finds a directory of the cache that is incomplete.
func TestInstallWithoutMarker(t *testing.T) {
	fetched := fakeRepository(t)
	for range 2 {
		root, err := install(t.Context())
		require.NoError(t, err)
		require.NoError(t, os.Remove(filepath.Join(root, markerName)))
		require.NoError(t, os.Remove(filepath.Join(root, "bin", "initdb")))
	}
	root, err := install(t.Context())
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(root, "bin", "initdb"))
	require.Equal(t, 3, *fetched)
}

func TestBinDir(t *testing.T) {
	t.Parallel()
	root, err := install(t.Context())
	require.NoError(t, err)
	start(t, Config{Dir: madeDir(t), BinDir: filepath.Join(root, "bin")})

	other := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(other, "postgres"), []byte("#!/bin/sh\necho 'postgres (PostgreSQL) 17.5'\n"), 0o755))
	_, err = Start(t.Context(), Config{Dir: t.TempDir(), BinDir: other})
	require.ErrorIs(t, err, driver.ErrUnsupported)
	require.ErrorContains(t, err, "17.5")

	_, err = Start(t.Context(), Config{Dir: t.TempDir(), BinDir: t.TempDir()})
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestUnpackTar(t *testing.T) {
	for name, tc := range map[string]struct {
		entries []tar.Header
		want    string // error; empty means none
	}{
		"plain": {entries: []tar.Header{
			{Name: "lib/", Typeflag: tar.TypeDir}, {Name: "bin/postgres", Typeflag: tar.TypeReg, Mode: 0o755},
			{Name: "lib/a.so", Typeflag: tar.TypeSymlink, Linkname: "a.so.1"},
			{Name: "lib/b", Typeflag: tar.TypeSymlink, Linkname: "../bin/postgres"},
		}},
		"parent":        {[]tar.Header{{Name: "../x", Typeflag: tar.TypeReg}}, "escapes"},
		"absolute":      {[]tar.Header{{Name: "/x", Typeflag: tar.TypeReg}}, "escapes"},
		"link out":      {[]tar.Header{{Name: "a/x", Typeflag: tar.TypeSymlink, Linkname: "../../y"}}, "leads out"},
		"absolute link": {[]tar.Header{{Name: "x", Typeflag: tar.TypeSymlink, Linkname: "/etc"}}, "leads out"},
		"device":        {[]tar.Header{{Name: "x", Typeflag: tar.TypeChar}}, "not expected"},
		"twice":         {[]tar.Header{{Name: "x", Typeflag: tar.TypeReg}, {Name: "x", Typeflag: tar.TypeReg}}, "exists"},
	} {
		t.Run(name, func(t *testing.T) {
			var stream bytes.Buffer
			w := tar.NewWriter(&stream)
			for _, h := range tc.entries {
				require.NoError(t, w.WriteHeader(&h))
			}
			require.NoError(t, w.Close())
			dir := t.TempDir()
			err := unpackTar(t.Context(), &stream, dir)
			if tc.want != "" {
				require.ErrorContains(t, err, tc.want)
				return
			}
			require.NoError(t, err)
			info, err := os.Stat(filepath.Join(dir, "bin", "postgres"))
			require.NoError(t, err)
			require.Equal(t, os.FileMode(0o755), info.Mode().Perm()&0o755)
		})
	}
}
