package probe

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// The test program is also the process that tests look at.
const obeys = "PROBE_TEST_OBEYS"

func TestMain(m *testing.M) {
	if os.Getenv(obeys) != "" {
		obey(os.Stdin, os.Stdout)
		return
	}
	goleak.VerifyTestMain(m)
}

// obey does what lines tell, and answers each when it is done.
func obey(in io.Reader, out io.Writer) {
	var held []byte
	var kept *servant
	for lines := bufio.NewScanner(in); lines.Scan(); {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		answer := "done"
		switch word {
		case "hold": // 32 MB of memory
			held = make([]byte, 32<<20)
			for i := range held {
				held[i] = 1
			}
		case "read":
			if text, err := os.ReadFile(rest); err != nil || len(text) != fileSize {
				answer = fmt.Sprint(len(text), err)
			}
		case "write": // a file of fileSize, and so many syncs
			name, count, _ := strings.Cut(rest, " ")
			if err := writeSynced(name, count); err != nil {
				answer = err.Error()
			}
		case "burn": // so much processor time
			burn(rest)
		case "keep": // a child does it, and lives on
			if kept == nil {
				kept = launch()
			}
			fmt.Fprintln(kept.in, rest)
			answer, _ = kept.out.ReadString('\n')
			answer = strings.TrimSpace(answer)
		case "child": // does one thing and ends
			child := exec.Command(os.Args[0])
			child.Env = append(os.Environ(), obeys+"=1")
			child.Stdin = strings.NewReader(rest + "\n")
			if err := child.Run(); err != nil {
				answer = err.Error()
			}
		}
		fmt.Fprintln(out, answer, len(held))
	}
}

// writeSynced writes a file in as many equal parts as it syncs.
func writeSynced(name, count string) error {
	n, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer f.Close()
	for range n {
		if _, err := f.Write(make([]byte, fileSize/n)); err != nil {
			return err
		}
		if err := f.Sync(); err != nil {
			return err
		}
	}
	return nil
}

func burn(text string) {
	d, _ := time.ParseDuration(text)
	for begun := ownCPU(); ownCPU()-begun < d; {
		work()
	}
}

// fileSize is that of the files that it reads.
const fileSize = 4 << 20

// servant is a process that follows orders until its input ends.
type servant struct {
	t   *testing.T
	pid int
	in  io.WriteCloser
	out *bufio.Reader
	cmd *exec.Cmd
}

func launch() *servant {
	s := &servant{cmd: exec.Command(os.Args[0])}
	s.cmd.Env = append(os.Environ(), obeys+"=1")
	s.in, _ = s.cmd.StdinPipe()
	out, _ := s.cmd.StdoutPipe()
	s.out = bufio.NewReader(out)
	if err := s.cmd.Start(); err != nil {
		panic(err)
	}
	s.pid = s.cmd.Process.Pid
	return s
}

func start(t *testing.T) *servant {
	s := launch()
	s.t = t
	t.Cleanup(func() {
		require.NoError(t, s.in.Close())
		require.NoError(t, s.cmd.Wait())
	})
	return s
}

func (s *servant) do(what string) {
	s.t.Helper()
	_, err := fmt.Fprintln(s.in, what)
	require.NoError(s.t, err)
	answer, err := s.out.ReadString('\n')
	require.NoError(s.t, err)
	require.Contains(s.t, answer, "done")
}
