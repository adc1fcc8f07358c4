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

func canMountMemory() string { return "file systems in memory are mounted on Linux alone" }

func mountMemory(string, int64) error { return errNoDisks }
func unmountBusy(string) error        { return errNoDisks }
func occupy(string, int64) error      { return errNoDisks }
