package bench

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

func readSystem(m *Manifest, dir string) {
	var name unix.Utsname
	if unix.Uname(&name) == nil {
		m.Set("kernel", unix.ByteSliceToString(name.Sysname[:])+" "+unix.ByteSliceToString(name.Release[:]))
	}
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		m.Set("ram-mb", strconv.FormatUint(uint64(info.Totalram)*uint64(info.Unit)>>20, 10)) //nolint:unconvert // 32 bits on some architectures
	}
	if proc, err := procfs.NewDefaultFS(); err == nil {
		if cpus, err := proc.CPUInfo(); err == nil && len(cpus) > 0 {
			m.Set("cpu", cpus[0].ModelName)
		}
	}
	m.Set("filesystem", filesystem(dir))
}

// filesystem returns the file system type of a directory, by the longest mount
// point above it.
func filesystem(dir string) (kind string) {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return ""
	}
	mounts, _ := procfs.GetMounts()
	best := ""
	for _, m := range mounts {
		point := strings.ReplaceAll(m.MountPoint, `\040`, " ")
		if len(point) >= len(best) && strings.HasPrefix(dir+"/", strings.TrimSuffix(point, "/")+"/") {
			best, kind = point, m.FSType
		}
	}
	return kind
}

// flush syncs the file system of a directory. That is faster than an fsync for
// each of the thousand files of a Postgres cluster.
func flush(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(unix.Syncfs(int(d.Fd())), d.Close())
}
