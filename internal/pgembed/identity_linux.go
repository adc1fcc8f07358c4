package pgembed

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// identity says as whom the server runs: as this process's user, or, because
// PostgreSQL refuses root, as another or in a user namespace.
type identity struct {
	uid, gid int // who owns the server's files

	// change makes files over to uid; it is set when root runs the server as
	// another user.
	change bool
	// inside is the user that root's user is called inside a user namespace; zero
	// without a namespace.
	inside int
}

// identify decides as whom the server of a directory runs.
func identify(dir string) (*identity, error) {
	if os.Geteuid() != 0 {
		return &identity{uid: os.Geteuid(), gid: os.Getegid()}, nil
	}
	info, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Uid != 0 {
		return &identity{uid: int(stat.Uid), gid: int(stat.Gid), change: true}, nil
	}
	inside, err := ordinaryUser()
	return &identity{inside: inside}, err
}

// ordinaryUsers are tried in turn: the first user of most systems, nobody, and
// two that are older than either.
var ordinaryUsers = []int{1000, 65534, 1, 2}

// ordinaryUser returns the number of a user other than root that the system has
// a name for: initdb asks for it.
func ordinaryUser() (int, error) {
	for _, id := range ordinaryUsers {
		if _, err := user.LookupId(strconv.Itoa(id)); err == nil {
			return id, nil
		}
	}
	return 0, errors.New("postgres does not run as root, and no other user exists; run as another user")
}

// command returns a command that runs as this identity, in a session of its own
// so that a terminal's Ctrl-C reaches this process only, and with an
// environment that cannot change what the program does. It has no Pdeathsig yet.
func (id *identity) command(path string, args ...string) *exec.Cmd {
	cmd := exec.Command(path, args...)
	cmd.Dir = "/"
	cmd.Env = environment()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	switch {
	case id.change:
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(id.uid), Gid: uint32(id.gid)}
	case id.inside != 0:
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: id.inside, HostID: 0, Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: id.inside, HostID: 0, Size: 1}}
	}
	return cmd
}

// environment is what PostgreSQL's programs are given: messages in English, and where
// the libraries of an installed one are.
func environment() []string {
	env := []string{"LC_ALL=C"}
	if path, ok := os.LookupEnv("LD_LIBRARY_PATH"); ok {
		env = append(env, "LD_LIBRARY_PATH="+path)
	}
	return env
}

// own makes a file over to the user that the server runs as.
func (id *identity) own(path string) error {
	if !id.change {
		return nil
	}
	return os.Lchown(path, id.uid, id.gid)
}

// explainStart says what to do when a program could not be started because of
// this identity.
func (id *identity) explainStart(err error) error {
	switch {
	case id.inside != 0 && (errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EINVAL)):
		return fmt.Errorf("postgres does not run as root, and the system refuses a user namespace; "+
			"run as another user, or give the directory to one: %w", err)
	case id.change && errors.Is(err, syscall.EACCES):
		return fmt.Errorf("user %d, who owns the directory, cannot run the binaries; "+
			"put them where that user may read: %w", id.uid, err)
	}
	return err
}
