package cli

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/internal/engine"
	"github.com/varvedb/varve/store/driver"
)

// serverVariable passes the URL of the user's server to a child, because other
// users could read a password on its command line.
const serverVariable = "VARVE_MEASURED_SERVER"

// toMeasure returns the engines for names and URLs. It refuses two with the
// same label, because the records could not distinguish them.
func toMeasure(args []string) (list []bench.Engine, err error) {
	labels := map[string]bool{}
	for _, arg := range args {
		e := bench.Engine{Name: arg}
		if strings.Contains(arg, "://") { // the URL of a user's server
			if e, err = serverOf(arg); err != nil {
				return nil, err
			}
		} else if err := known("engine", []string{driver.Redact(arg)}, engine.Names()); err != nil {
			return nil, err
		}
		if labels[e.Label()] {
			return nil, fmt.Errorf("%s is given twice", e.Label())
		}
		labels[e.Label()] = true
		list = append(list, e)
	}
	return list, nil
}

func serverOf(rawURL string) (bench.Engine, error) {
	u, err := driver.ParseURL(rawURL)
	if err != nil {
		return bench.Engine{}, fmt.Errorf("%s: %w", driver.Redact(rawURL), err)
	}
	var names []string // of the engines whose servers can be measured
	for _, d := range driver.Linked() {
		if d.Scratch != nil {
			names = append(names, d.Name)
		}
	}
	if !slices.Contains(names, u.Scheme) {
		return bench.Engine{}, fmt.Errorf("%s: no server that this program can measure; give the name of an engine (%s), or the URL of a server of %s",
			driver.Redact(rawURL), strings.Join(engine.Names(), ", "), strings.Join(names, ", "))
	}
	return bench.Engine{Name: u.Scheme, Server: rawURL}, nil
}

// measuredHere returns the engine that this process measures, from its
// environment.
func measuredHere(label string) bench.Engine {
	name, _, _ := strings.Cut(label, "@")
	return bench.Engine{Name: name, Server: os.Getenv(serverVariable)}
}
