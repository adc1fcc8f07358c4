package store_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
	"github.com/varvedb/varve/store/query"
)

// newest is the example of README.md, which TestReadme compares.
func newest(ctx context.Context, path string, block entity.Block) error {
	db, err := store.Open(ctx, "sqlite:"+path+"?durability=durable", nil)
	if err != nil {
		return err
	}
	defer db.Close()
	entities, err := db.Entities(ctx, nil) // a new store has layout compact
	if err != nil {
		return err
	}
	if _, err := entities.Apply(ctx, block); err != nil { // one block, one transaction
		return err
	}
	view, err := entities.At(ctx, store.Head) // or a past block
	if err != nil {
		return err
	}
	defer view.Close()
	nodes, err := query.Parse(`type = "node" && cpu >= 8`)
	if err != nil {
		return err
	}
	for e, err := range view.Query(ctx, nodes, nil) { // newest first
		if err != nil {
			return err
		}
		fmt.Println(e.Key, e.NumericAttributes["cpu"])
	}
	return nil
}

func Example() {
	dir, err := os.MkdirTemp("", "varve-example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	block := entity.Block{Number: 7, Ops: []entity.Op{node(1, 4, 100), node(2, 16, entity.MaxBlock)}}
	if err := newest(context.Background(), filepath.Join(dir, "varve.db"), block); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 0x0200000000000000000000000000000000000000000000000000000000000000 16
}

// TestReadme: the Go of README.md is the body of the example above.
func TestReadme(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join("..", "README.md"))
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllSubmatch(readme, -1)
	require.NotEmpty(t, blocks)
	source, err := os.ReadFile("readme_test.go")
	require.NoError(t, err)
	for _, b := range blocks {
		require.Contains(t, strings.ReplaceAll(string(source), "\n\t", "\n"), string(b[1]))
	}
}
