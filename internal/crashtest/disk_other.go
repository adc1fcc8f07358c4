//go:build !linux

package crashtest

import "errors"

// disk is a file system in a file, which only Linux mounts.
type disk struct{ dir string }

var errNoDisks = errors.New("disks in files are mounted on Linux alone")

func canMountDisks() string { return errNoDisks.Error() }

func newDisk(string) (*disk, error) { return nil, errNoDisks }

func (*disk) mount() error    { return errNoDisks }
func (*disk) unmount() error  { return errNoDisks }
func (*disk) cutPower() error { return errNoDisks }
func (*disk) remove() error   { return errNoDisks }

func waitForEnd([]int) {}

// CanMountMemory returns why no file system in memory can be mounted here.
func CanMountMemory() string { return "file systems in memory are mounted on Linux alone" }

// MountMemory fails here.
func MountMemory(string, int64) error { return errNoDisks }

// UnmountMemory fails here.
func UnmountMemory(string) error { return errNoDisks }

func occupy(string, int64) error { return errNoDisks }
