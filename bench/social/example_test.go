package social_test

import (
	"fmt"

	"github.com/varvedb/varve/bench/social"
)

// A line of a script that is not understood is named.
func ExampleParseScript() {
	script, err := social.ParseScript([]byte(`
name: evening
rate: 2000
duration: 1m
steps:
  - {check: content, weight: 99}
  - {write: follower, weight: 1}
`))
	fmt.Println(script.Phases, script.Steps[1].Name(), err)

	_, err = social.ParseScript([]byte("name: evening\nrate: fast\n"))
	fmt.Println(err)
	// Output:
	// [{2000 1m0s}] write-follower <nil>
	// load script: yaml: unmarshal errors:
	//   line 2: cannot unmarshal !!str `fast` into float64
}

// The answer to a question is known at every point of the writes.
func ExampleOracle() {
	graph, err := social.New(10_000, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	oracle := social.NewOracle(graph)
	owner, content := social.NewObject(social.User, 7), social.NewObject(social.Content, 2)
	question := social.Question{Step: &social.Step{Check: "content"}, Viewer: owner, Object: content}
	fmt.Println(graph.Count(social.User), "users;", question, "finds", oracle.Answer(question, 0))
	// Output:
	// 52 users; check-content of content:2 by user:7 finds [content:2]
}
