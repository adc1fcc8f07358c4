package rpc_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"

	"github.com/varvedb/varve/node/rpc"
	"github.com/varvedb/varve/store"

	"github.com/varvedb/varve/store/entity"
	_ "github.com/varvedb/varve/store/sqlite"
)

// A node keeps its entities in a store and answers Arkiv's SDKs from it.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "varve")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	db, err := store.Open(ctx, "sqlite://"+filepath.Join(dir, "node.db"), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	ents, err := db.Entities(ctx, &store.EntityOptions{Layout: "compact"})
	if err != nil {
		log.Fatal(err)
	}
	block := entity.Block{Number: 1, Ops: []entity.Op{{
		Kind: entity.Create, Key: entity.Key{31: 7}, BTL: 100, ContentType: "text/plain", Content: []byte("hello"),
		StringAttributes: map[string]string{"type": "greeting"},
	}}}
	if _, err := ents.Apply(ctx, block); err != nil {
		log.Fatal(err)
	}

	handler, err := rpc.New(ctx, ents, rpc.Options{ChainID: 1337})
	if err != nil {
		log.Fatal(err)
	}
	defer handler.Close()
	server := httptest.NewServer(handler) // or http.ListenAndServe("127.0.0.1:8555", handler)
	defer server.Close()

	call := `{"jsonrpc":"2.0","id":1,"method":"arkiv_query","params":["type = \"greeting\"",{"includeData":{"payload":true,"expiration":true}}]}`
	answer, err := http.Post(server.URL, "application/json", bytes.NewReader([]byte(call)))
	if err != nil {
		log.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(text))
	// Output:
	// {"jsonrpc":"2.0","id":1,"result":{"data":[{"value":"0x68656c6c6f","expiresAt":101}],"blockNumber":"0x1"}}
}
