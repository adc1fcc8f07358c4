package crashtest

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/varvedb/varve/internal/filesync"
)

// Disk is a mounted file system of a trial, in memory or in a file.
type Disk struct {
	Dir     string // where it is mounted
	file    string // which it is in; "" for memory
	options string // of mounting
	mounted bool
}

// CanMount returns why no memory file system can be mounted here, or "".
var CanMount = sync.OnceValue(func() string {
	parent, err := os.MkdirTemp("", "varve-mount-")
	if err == nil {
		var d *Disk
		if d, err = NewDisk(filepath.Join(parent, "disk"), 1<<20); err == nil {
			err = d.Unmount()
		}
		err = errors.Join(err, os.RemoveAll(parent))
	}
	if err != nil { // root of a container may not
		return err.Error()
	}
	return ""
})

// NewDisk mounts a memory file system of a size in bytes at a new directory.
func NewDisk(dir string, size int64) (*Disk, error) {
	d := &Disk{Dir: dir, options: fmt.Sprintf("size=%d,mode=0755", size)}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	return d, d.mount()
}

// canMountFiles returns why no file system in a file can be mounted here, or
// "".
func canMountFiles() string {
	for _, program := range []string{"mkfs.ext4", "cp"} {
		if _, err := exec.LookPath(program); err != nil {
			return program + " is not installed"
		}
	}
	if _, err := os.Stat("/dev/loop-control"); err != nil {
		return "the system has no loop devices"
	}
	return CanMount()
}

// fileSize is the size in bytes of a file-backed disk, whose file is sparse.
const fileSize = 512 << 20

// newFileDisk makes a file system in a file of a directory. During a worker's
// life only syncs write to the file.
func newFileDisk(dir string) (*Disk, error) {
	d := &Disk{Dir: filepath.Join(dir, "disk"), file: filepath.Join(dir, "disk.img"), options: "loop,commit=600"}
	if err := os.Mkdir(d.Dir, 0o755); err != nil {
		return nil, err
	}
	f, err := os.Create(d.file)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(f.Truncate(fileSize), f.Close()); err != nil {
		return nil, err
	}
	return d, run("mkfs.ext4", "-q", "-F", "-m", "0", d.file)
}

func (d *Disk) mount() error {
	kind := "ext4"
	if d.file == "" {
		kind = "tmpfs"
	}
	err := run("mount", "-t", kind, "-o", d.options, cmp.Or(d.file, "tmpfs"), d.Dir)
	d.mounted = err == nil
	return err
}

// Remount mounts the disk again with other options.
func (d *Disk) Remount(options string) error { return run("mount", "-o", "remount,"+options, d.Dir) }

// Unmount unmounts the disk. It retries while a process that just ended still
// holds it.
func (d *Disk) Unmount() (err error) {
	if d.mounted {
		err = patiently(func() error { return run("umount", d.Dir) })
		d.mounted = err != nil
	}
	return err
}

// cutPower replaces the disk by the contents that have reached its file. All
// writers must have ended.
func (d *Disk) cutPower() error {
	left := d.file + ".left"
	if err := run("cp", "--sparse=always", d.file, left); err != nil {
		return err
	}
	if err := d.Unmount(); err != nil {
		return err
	}
	return os.Rename(left, d.file)
}

// occupy creates a file that fills its disk except for some bytes.
func occupy(path string, leave int64) error {
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		return err
	}
	for {
		free, err := filesync.Free(path)
		if size := int64(free) - leave; err != nil || size <= 0 {
			return err
		} else if err := run("fallocate", "-l", fmt.Sprint(size), path); err == nil || !strings.Contains(err.Error(), "No space") {
			return err // else the store took some of it meanwhile
		}
	}
}

// run runs a program of the system.
func run(name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, strings.TrimSpace(string(out)))
	}
	return nil
}

// waitForEnd waits until orphaned processes have ended.
func waitForEnd(pids []int) {
	for _, pid := range pids {
		_ = patiently(func() error {
			if p, err := os.FindProcess(pid); err == nil && p.Signal(syscall.Signal(0)) == nil {
				return os.ErrDeadlineExceeded
			}
			return nil
		})
	}
}
