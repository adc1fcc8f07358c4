package cli

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// planned is a command of a plan.
type planned struct {
	line   string
	runCmd *runCmd
	runner *runner
}

// through does the commands of a plan that are not done, each as if it were given alone,
// into the one set that all of them name.
func (c *runCmd) through(e *env) error {
	list, err := readPlan(c.Plan)
	if err != nil {
		return usageError{fmt.Errorf("%s: %w", c.Plan, err)}
	}
	var has *past
	var whole, rest time.Duration // of the plan, by its own times
	shares := make([]time.Duration, len(list))
	for i, p := range list {
		p.runner.past = has
		left, done, err := p.runner.left(e)
		if err != nil {
			return err
		}
		has, p.runner.past = p.runner.past, nil // it is another one when its turn comes
		if shares[i] = p.runner.about * time.Duration(len(left)) / time.Duration(max(len(left)+done, 1)); len(left) == 0 {
			list[i].runner = nil
		}
		whole, rest = whole+p.runner.about, rest+shares[i]
	}
	fmt.Fprintf(e.stderr, "run: %s of the plan's %s are left\n", rest, whole)
	start := time.Now()
	for i, p := range list {
		if p.runner == nil {
			continue
		}
		if p.runner.watch != nil {
			p.runner.watch.pauses = offPauses
		}
		if c.Until > 0 {
			p.runner.until = start.Add(c.Until)
		}
		fmt.Fprintf(e.stderr, "run: %d of %d, about %s left of the plan: %s\n", i+1, len(list), rest.Round(time.Second), p.line)
		if err := p.runner.run(e); errors.Is(err, errUntil) {
			fmt.Fprintf(e.stderr, "run: %s\n", err)
			break
		} else if err != nil {
			return fmt.Errorf("%s: %w", p.line, err)
		}
		rest -= shares[i]
	}
	return list[0].runCmd.finish(e)
}

// readPlan returns the commands of a plan.
func readPlan(path string) (list []planned, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	shell := false
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "```") {
			shell = line == "```sh"
		}
		if !shell || !strings.HasPrefix(line, "varve run ") || strings.Contains(line, " --plan ") {
			continue // or how the plan itself is gone through
		}
		p, err := plannedBy(line)
		if err == nil && len(list) > 0 && p.runCmd.Out != list[0].runCmd.Out {
			err = errors.New("another --out than that of the first")
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", line, err)
		}
		list = append(list, p)
	}
	if len(list) == 0 {
		err = errors.New("no line of a sh block begins with varve run")
	}
	return list, err
}

func plannedBy(line string) (p planned, err error) {
	command, remark, _ := strings.Cut(line, "#")
	p.line = strings.TrimSpace(command)
	word, _, _ := strings.Cut(strings.TrimSpace(remark), " ")
	about, err := time.ParseDuration(strings.TrimSuffix(word, ":"))
	if err != nil {
		return p, fmt.Errorf("the time that it takes is missing, as in # 20m: %w", err)
	}
	var cmds commands
	parser, err := newParser(&cmds)
	if err != nil {
		return p, err
	}
	if _, err := parser.Parse(strings.Fields(p.line)[1:]); err != nil {
		return p, err
	}
	if p.runCmd = &cmds.Run; p.runCmd.List {
		return p, errors.New("it measures nothing")
	}
	if p.runner, err = p.runCmd.runner(); err == nil {
		p.runner.about = about
	}
	return p, err
}
