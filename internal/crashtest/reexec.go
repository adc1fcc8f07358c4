package crashtest

import (
	"context"
	"os"
	"os/exec"
)

// workerEnv has the configuration of a worker that is this program run again.
const workerEnv = "VARVE_CRASH_WORKER"

// Reexec is the Command of programs, such as tests, that call WorkerIfAsked before
// they do anything else.
func Reexec(ctx context.Context, config string) *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), workerEnv+"="+config)
	return cmd
}

// WorkerIfAsked runs a worker and returns its exit code when this process was
// started by Reexec.
func WorkerIfAsked() (code int, asked bool) {
	config, asked := os.LookupEnv(workerEnv)
	if !asked {
		return 0, false
	}
	return WorkerMain(context.Background(), config, os.Stdout), true
}
