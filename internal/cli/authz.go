package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// authzCmd is the permission workloads: who may do what with which resource.
type authzCmd struct {
	Rebac  authzRebacCmd  `cmd:"" help:"Check and list permissions through organizations, groups and their hierarchy, on each engine in its own process."`
	Social authzSocialCmd `cmd:"" help:"Run a load script over a social graph at target rates, and hold it against service levels."`

	RebacWorker authzRebacWorkerCmd `cmd:"" hidden:"" help:"Measure one engine for rebac; prints JSON."`
}

// knownEngines refuses names that are no engine's.
func knownEngines(names []string) error {
	for _, name := range names {
		if !slices.Contains(allEngines, name) {
			return usageError{fmt.Errorf("unknown engine %q; known are %s", name, strings.Join(allEngines, ", "))}
		}
	}
	return nil
}

// runWorkload runs a command in the program that links an engine, in a process of
// its own, and reads the JSON that it prints. What a command printed before it
// failed is read as well.
func runWorkload(e *env, engine string, into any, args ...string) error {
	binary, err := binaryFor(e.ctx, engine)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(e.ctx, binary, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = interruptGrace
	var stdout bytes.Buffer
	var tail tailWriter
	cmd.Stdout, cmd.Stderr = &stdout, io.MultiWriter(e.stderr, &tail)
	err = cmd.Run()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, tail.last())
	}
	if parse := json.Unmarshal(stdout.Bytes(), into); parse != nil && err == nil {
		return fmt.Errorf("read the worker's answer: %w", parse)
	}
	return err
}
