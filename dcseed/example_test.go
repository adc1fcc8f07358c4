package dcseed_test

import (
	"fmt"

	"github.com/varvedb/varve/dcseed"
)

func Example() {
	m, err := dcseed.New(dcseed.Config{Seed: 42, NodesPerDC: 1_000, Payload: 100})
	if err != nil {
		panic(err)
	}
	entities := 0
	for b, err := range m.Blocks(dcseed.FirstBlock, m.FirstLoadBlock()-1) {
		if err != nil {
			panic(err)
		}
		entities += len(b.Ops)
	}
	head := m.FirstLoadBlock() + 99 // after 100 blocks of load
	oracle := dcseed.NewOracle(m)
	q := m.WorkloadsOnNode(1, 42, head)
	fmt.Println(entities, "entities")
	fmt.Println(q.Expr)
	fmt.Println(len(oracle.Expected(q).Keys), "workloads")
	fmt.Println(oracle.Verify(q, dcseed.Answer{Keys: oracle.Expected(q).Keys[1:]}))
	// Output:
	// 6000 entities
	// assigned_node = "node_01_000042"
	// 5 workloads
	// wrong answer: workloads-on-node of node_01_000042 at block 110: 4 found, want 5; position 0 is 0x76df1db0aba5ded9a4c478dbae61393b690867448114a29b9552e247cda98dbb, want 0xd5ad4b6af484fe3f3bdf30ea5e222ecdbaef80f91530f5c2a4d6bb6492aeab6e
}
