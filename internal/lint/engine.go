package lint

import (
	"go/token"
	"path"
	"regexp"
	"strings"

	"github.com/varvedb/varve/internal/engine"
)

// namers may name engines besides an engine's own packages and tests.
var namers = []string{
	"./internal/engine",           // it is the list
	"./internal/answer",           // the tree of the user's document tells what to do with each
	"./schemas", "./store/driver", // dialects of SQL are called after engines
	"./examples/...",
}

// engineName matches a text that is an engine's name, a list with one, or a URL.
var engineName = regexp.MustCompile(`(?:^|[",])(` + strings.Join(engine.Names(), "|") + `)(?:$|[",:])`)

// checkEngines finds engines that are named where a new one would have to be added.
func (f *file) checkEngines() []Problem {
	dir := path.Join(Module, path.Dir(f.path))
	if matchAny(namers, dir) || strings.HasSuffix(dir, "test") {
		return nil
	}
	var problems []Problem
	f.literals(func(pos token.Pos, text string) {
		if m := engineName.FindStringSubmatch(text); m != nil && !matchAny(owners(engine.Find(m[1])), dir) {
			problems = append(problems, f.at(pos, "names engine "+m[1]+": ask internal/engine or the driver's capabilities"))
		}
	})
	return problems
}

// owners are the packages of an engine.
func owners(e engine.Engine) []string {
	list := []string{"./store/" + e.Name + "/...", "./bench/" + e.Name + "/..."}
	for _, name := range e.Internal {
		list = append(list, "./internal/"+name+"/...")
	}
	return list
}
