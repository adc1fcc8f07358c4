package bench

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

func readSystem(h *Host, dir string) {
	var name unix.Utsname
	if unix.Uname(&name) == nil {
		h.Kernel = unix.ByteSliceToString(name.Sysname[:]) + " " + unix.ByteSliceToString(name.Release[:])
	}
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		h.MemoryBytes = uint64(info.Totalram) * uint64(info.Unit) //nolint:unconvert // 32 bits on some architectures
	}
	h.CPU = cpuModel()
	h.Filesystem = filesystem(dir)
}

func cpuModel() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if name, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// filesystem returns the type of the file system that a directory is on: of
// the longest mount point above it.
func filesystem(dir string) string {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return ""
	}
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return ""
	}
	defer f.Close()
	best, kind := "", ""
	for lines := bufio.NewScanner(f); lines.Scan(); {
		point, k, ok := parseMount(lines.Text())
		if ok && within(dir, point) && len(point) >= len(best) {
			best, kind = point, k
		}
	}
	return kind
}

// parseMount reads mount point and type from a line of mountinfo, see
// proc_pid_mountinfo(5).
func parseMount(line string) (point, kind string, ok bool) {
	left, right, ok := strings.Cut(line, " - ")
	fields, tail := strings.Fields(left), strings.Fields(right)
	if !ok || len(fields) < 5 || len(tail) < 1 {
		return "", "", false
	}
	point = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(fields[4])
	return point, tail[0], true
}

func within(dir, point string) bool {
	return point == "/" || dir == point || strings.HasPrefix(dir, point+"/")
}
