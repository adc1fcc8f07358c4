package crashtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// diskSize is the size of a disk in bytes. The file that it is has holes.
const diskSize = 512 << 20

// disk is a file system in a file.
type disk struct {
	file    string
	dir     string // where it is mounted
	mounted bool
}

// canMountDisks returns why no disk can be mounted here, or "".
func canMountDisks() string {
	if os.Geteuid() != 0 {
		return "mounting a disk needs root"
	}
	if _, err := os.Stat("/dev/loop-control"); err != nil {
		return "the system has no loop devices"
	}
	for _, program := range []string{"mkfs.ext4", "mount", "umount", "cp"} {
		if _, err := exec.LookPath(program); err != nil {
			return program + " is not installed"
		}
	}
	return ""
}

// newDisk makes an empty disk in a directory.
func newDisk(dir string) (*disk, error) {
	d := &disk{file: filepath.Join(dir, "disk.img"), dir: filepath.Join(dir, "disk")}
	if err := os.Mkdir(d.dir, 0o755); err != nil {
		return nil, err
	}
	f, err := os.Create(d.file)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(f.Truncate(diskSize), f.Close()); err != nil {
		return nil, err
	}
	return d, run("mkfs.ext4", "-q", "-F", "-m", "0", d.file)
}

// mount mounts the disk so that nothing reaches the file unless a sync asks for it,
// within the time that a worker lives.
func (d *disk) mount() error {
	err := run("mount", "-t", "ext4", "-o", "loop,commit=600", d.file, d.dir)
	d.mounted = err == nil
	return err
}

// cutPower replaces the disk by what has reached it. Nothing writes to it any more.
func (d *disk) cutPower() error {
	left := d.file + ".left"
	if err := run("cp", "--sparse=always", d.file, left); err != nil {
		return err
	}
	if err := d.unmount(); err != nil {
		return err
	}
	return os.Rename(left, d.file)
}

func (d *disk) unmount() (err error) {
	if !d.mounted {
		return nil
	}
	err = patiently(func() error { return run("umount", d.dir) })
	d.mounted = err != nil
	return err
}

func (d *disk) remove() error {
	return errors.Join(d.unmount(), os.RemoveAll(d.file))
}

// run runs a program of the system.
func run(name string, args ...string) error {
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, strings.TrimSpace(string(out)))
	}
	return nil
}

// waitForEnd waits until processes have ended that lost their parent.
func waitForEnd(pids []int) {
	for _, pid := range pids {
		_ = patiently(func() error {
			if unix.Kill(pid, 0) == nil {
				return unix.EBUSY
			}
			return nil
		})
	}
}

// CanMountMemory returns why no file system in memory can be mounted here, or "".
var CanMountMemory = sync.OnceValue(func() string {
	if os.Geteuid() != 0 {
		return "mounting a file system needs root"
	}
	parent, err := os.MkdirTemp("", "varve-mount-")
	if err == nil {
		dir := filepath.Join(parent, "disk")
		if err = MountMemory(dir, 1<<20); err == nil {
			err = UnmountMemory(dir)
		}
		err = errors.Join(err, os.RemoveAll(parent))
	}
	if err != nil { // root of a container may not
		return err.Error()
	}
	return ""
})

// MountMemory mounts a file system in memory of a size in bytes at a new directory.
func MountMemory(dir string, size int64) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d,mode=0755", size)); err != nil {
		return fmt.Errorf("mount a tmpfs: %w", err)
	}
	return nil
}

// UnmountMemory unmounts it, though a process which just ended may still hold it.
func UnmountMemory(dir string) error {
	return patiently(func() error { return unix.Unmount(dir, 0) })
}

// occupy fills the file system that a new file is on but for some bytes.
func occupy(path string, leave int64) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	for err = unix.ENOSPC; errors.Is(err, unix.ENOSPC); { // the store took some of it meanwhile
		var st unix.Statfs_t
		if err = unix.Fstatfs(int(f.Fd()), &st); err != nil {
			break
		}
		size := int64(st.Bavail)*st.Bsize - leave
		if size <= 0 {
			break
		}
		err = unix.Fallocate(int(f.Fd()), 0, 0, size)
	}
	return errors.Join(err, f.Close())
}
