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

// identity is the user as whom the server runs: this process's user, or,
// because PostgreSQL refuses root, another user or one in a user namespace.
type identity struct {
	uid, gid int // who owns the server's files

	// change gives files to uid; it is set when root runs the server as another
	// user.
	change bool
	// inside is the number that uid has inside a user namespace; zero without a
	// namespace.
	inside int
}

// identify decides as which user the server of a directory runs.
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
	inside, ok := ordinaryUser()
	if !ok {
		return nil, errors.New("postgres does not run as root, and no other user exists; run as another user")
	}
	return &identity{inside: inside}, nil
}

// forInit returns the identity that creates data. Initdb and a single-user server
// look up their user's name, which a user invented by a container does not
// have. Inside a user namespace it gets the number of a user with a name. A
// normal server does not look it up.
func (id *identity) forInit() (*identity, error) {
	if _, err := user.LookupId(strconv.Itoa(id.uid)); err == nil || id.inside != 0 {
		return id, nil
	}
	inside, ok := ordinaryUser()
	if !ok {
		return nil, fmt.Errorf("initdb asks for the name of user %d, and this system has a name for none; add a line for it to /etc/passwd", id.uid)
	}
	named := *id
	named.inside = inside
	return &named, nil
}

// ordinaryUsers are tried in turn: the first user of most systems, nobody, and
// two old system users.
var ordinaryUsers = []int{1000, 65534, 1, 2}

// ordinaryUser returns the number of a user other than root that has a name,
// because initdb looks it up.
func ordinaryUser() (int, bool) {
	for _, id := range ordinaryUsers {
		if _, err := user.LookupId(strconv.Itoa(id)); err == nil {
			return id, true
		}
	}
	return 0, false
}

// command returns a command that runs as this identity. It gets a separate
// session, so that a terminal's Ctrl-C reaches only this process, and a clean
// environment. Pdeathsig is not set yet.
func (id *identity) command(path string, args ...string) *exec.Cmd {
	cmd := exec.Command(path, args...)
	cmd.Dir = "/"
	cmd.Env = environment()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	uid, gid := id.uid, id.gid
	if id.inside != 0 {
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: id.inside, HostID: uid, Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: id.inside, HostID: gid, Size: 1}}
		cmd.SysProcAttr.GidMappingsEnableSetgroups = id.change
		uid, gid = id.inside, id.inside
	}
	if id.change {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
	return cmd
}

// environment is the environment of PostgreSQL's programs: messages in English,
// and the library path of an installed PostgreSQL.
func environment() []string {
	env := []string{"LC_ALL=C"}
	if path, ok := os.LookupEnv("LD_LIBRARY_PATH"); ok {
		env = append(env, "LD_LIBRARY_PATH="+path)
	}
	return env
}

// own gives a file to the user as whom the server runs.
func (id *identity) own(path string) error {
	if !id.change {
		return nil
	}
	return os.Lchown(path, id.uid, id.gid)
}

// explainStart adds advice when a program could not be started because of this
// identity.
func (id *identity) explainStart(err error) error {
	refused := id.inside != 0 && (errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EINVAL))
	switch {
	case refused && id.uid == 0:
		return fmt.Errorf("postgres does not run as root, and the system refuses a user namespace; "+
			"run as another user, or give the directory to one: %w", err)
	case refused:
		return fmt.Errorf("initdb asks for the name of user %d, who has none, and the system refuses a user namespace; "+
			"add a line for it to /etc/passwd, or make the directory elsewhere: %w", id.uid, err)
	case id.change && errors.Is(err, syscall.EACCES):
		return fmt.Errorf("user %d, who owns the directory, cannot run the binaries; "+
			"put them where that user may read: %w", id.uid, err)
	}
	return err
}
