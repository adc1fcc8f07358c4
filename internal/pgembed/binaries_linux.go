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

// sums are the SHA-256 of the archives of Version, for each platform, as
// published by the repository. Because they are pinned, any mirror can be used;
// a new Version needs new sums.
var sums = map[string]string{
	"linux-amd64":        "1974c3a59c3ae010e9818e81637e425aad94eaac26e4ef533b42e081fe7ca345",
	"linux-amd64-alpine": "510fd314da39f1eeccef774a92428474168fedf55403342548e2adeaed66b483",
	"linux-arm64v8":      "1fb555a6602c13a113ab1f0cc9224d599948e85e51ac5f001393605505eaf78e",
}

// findBinaries returns the directory with initdb and postgres: dir, where they
// must be of version Major, or without dir the cache, to which it downloads them
// if they are missing.
func findBinaries(ctx context.Context, dir string, owner *identity) (string, error) {
	if dir == "" {
		root, err := install(ctx)
		return filepath.Join(root, "bin"), err
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	// Run postgres to learn its version.
	postgres := filepath.Join(dir, "postgres")
	out, err := run(ctx, owner.command(postgres, "--version"))
	if err != nil {
		return "", owner.explainStart(err)
	}
	if m := versionLine.FindStringSubmatch(out); m == nil || m[1] != Major {
		err = fmt.Errorf("%q is %q and must be PostgreSQL %s: %w", postgres, strings.TrimSpace(out), Major, driver.ErrUnsupported)
	}
	return dir, err
}

var versionLine = regexp.MustCompile(`\(PostgreSQL\) (\d+)`)

// install returns the cache directory of the unpacked binaries. Several
// processes may install concurrently: one downloads, the others wait.
func install(ctx context.Context) (string, error) {
	platform := platformName()
	sum, ok := sums[platform]
	if !ok {
		return "", fmt.Errorf("no binaries are known for %s; name those of an installed PostgreSQL %s with bin_dir: %w",
			platform, Major, driver.ErrUnsupported)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no directory to keep the server's programs in; set $XDG_CACHE_HOME to one: %w", err)
	}
	cache = filepath.Join(cache, "varve", "postgres")
	dir := filepath.Join(cache, Version+"-"+platform)
	if isReady(dir, sum) {
		return dir, nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", fmt.Errorf("a directory to keep the server's programs in: %w; set $XDG_CACHE_HOME to one that can be written", err)
	}
	lock, err := filelease.Wait(ctx, dir+".lock", 0o644)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if isReady(dir, sum) {
		return dir, nil
	}
	if err := fill(ctx, platform, sum, dir); err != nil {
		return "", fmt.Errorf("get PostgreSQL %s: %w; to do without, name the programs of an installed PostgreSQL %s "+
			"with bin_dir, or copy %q from a machine that has it", Version, err, Major, dir)
	}
	return dir, nil
}

// repository is the address of the Maven repository with the archives.
var repository = "https://repo1.maven.org/maven2"

// fill downloads and unpacks the binaries into a temporary directory, and
// renames it when it is complete, marked and synced.
func fill(ctx context.Context, platform, sum, dir string) (err error) {
	name := "embedded-postgres-binaries-" + platform
	address := fmt.Sprintf("%s/io/zonky/test/postgres/%s/%s/%s-%s.jar", repository, name, Version, name, Version)
	part := dir + ".part"
	if err := errors.Join(os.RemoveAll(part), os.Mkdir(part, 0o755)); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(part)) }()
	archive := filepath.Join(part, "archive.jar")
	if err := fetch(ctx, address, sum, archive); err != nil {
		return err
	}
	if err := unpackArchive(ctx, archive, part); err != nil {
		return fmt.Errorf("unpack %q: %w", address, err)
	}
	marker := filepath.Join(part, markerName)
	if err := errors.Join(os.Remove(archive), os.WriteFile(marker, []byte(sum+"\n"), 0o644), syncTree(part)); err != nil {
		return err
	}
	// An existing directory without a marker is damaged or from another
	// version.
	if err := errors.Join(os.RemoveAll(dir), os.Rename(part, dir)); err != nil {
		return err
	}
	return filesync.Dir(filepath.Dir(dir))
}

// markerName is the file that marks a cache directory as complete. It contains
// the archive's name.
const markerName = "READY"

func isReady(dir, sum string) bool {
	text, err := os.ReadFile(filepath.Join(dir, markerName))
	return err == nil && strings.TrimSpace(string(text)) == sum
}

// platformName is this system's name in the archives.
func platformName() string {
	name := runtime.GOOS + "-" + strings.Replace(runtime.GOARCH, "arm64", "arm64v8", 1)
	if _, err := os.Stat("/etc/alpine-release"); err == nil {
		name += "-alpine" // linked with musl
	}
	return name
}
