package query_test

import (
	"errors"
	"fmt"

	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
)

func ExampleParse() {
	q, err := query.Parse(`type = "node" and (cpu >= 8 or not status in ("offline" "failed"))`)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(q)
	// Output: type = "node" && (cpu >= 8 || !(status in ("offline" "failed")))
}

func ExampleParse_error() {
	_, err := query.Parse(`type = "node" && (cpu >= )`)
	fmt.Println(err)
	var syntax *query.SyntaxError
	if errors.As(err, &syntax) {
		fmt.Println("column", syntax.Column)
	}
	// Output:
	// query 1:26: unexpected ")", expected a value
	// column 26
}

func ExampleMatch() {
	node := &entity.Entity{StringAttributes: map[string]string{"status": "online"}}
	for _, src := range []string{`status != "offline"`, `region != "north"`, `!(region = "north")`} {
		q, err := query.Parse(src)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(q, query.Match(q, node))
	}
	// Output:
	// status != "offline" true
	// region != "north" false
	// !(region = "north") true
}

func ExamplePrefixRange() {
	prefix, onlyStar := query.CompileGlob("node_*").Prefix()
	lo, hi := query.PrefixRange(prefix)
	fmt.Println(lo, hi, onlyStar)
	// Output: node_ node` true
}
