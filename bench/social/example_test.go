package social_test

import (
	"fmt"

	"github.com/varvedb/varve/bench/social"
)

// The answer to a question is known at every point of the writes.
func ExampleOracle() {
	graph, err := social.New(10_000, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	oracle := social.NewOracle(graph)
	owner, content := social.NewObject(social.User, 7), social.NewObject(social.Content, 2)
	question := social.Question{Viewer: owner, Object: content}
	fmt.Println(graph.Count(social.User), "users;", question, oracle.Answer(question, 0))
	// Output:
	// 52 users; may user:7 see content:2 true
}
