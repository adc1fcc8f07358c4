package chaintest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"

	"github.com/varvedb/varve/node/chain"
)

type call struct {
	ID     json.RawMessage   `json:"id"`
	Method string            `json:"method"`
	Params []json.RawMessage `json:"params"`
}

type answer struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  any             `json:"result"`
	Error   any             `json:"error,omitempty"`
}

// ServeHTTP implements http.Handler: JSON-RPC, a single call or a batch of up
// to 50.
func (c *Chain) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	calls := make([]call, 1)
	batch := bytes.HasPrefix(body, []byte("["))
	switch {
	case err != nil:
	case batch:
		err = json.Unmarshal(body, &calls)
	default:
		err = json.Unmarshal(body, &calls[0])
	}
	if err != nil || len(calls) > 50 {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	answers := make([]answer, len(calls))
	for i, call := range calls {
		// Answer in reverse order, because the answers of a batch may come in
		// any order.
		answers[len(calls)-1-i] = c.answer(call)
	}
	var text any = answers
	if !batch {
		text = answers[0]
	}
	_ = json.NewEncoder(w).Encode(text) // a client that does not take it is gone
}

func (c *Chain) answer(call call) answer {
	a := answer{Version: "2.0", ID: call.ID}
	switch call.Method {
	case "eth_chainId":
		a.Result = chain.Quantity(c.ID)
	case "eth_blockNumber":
		a.Result = chain.Quantity(c.last())
	case "eth_getBlockByNumber":
		if m := c.find(call); m != nil {
			block := m.block
			if string(call.Params[1]) == "false" {
				block.Transactions = nil
			}
			a.Result = block
		}
	case "eth_getBlockReceipts":
		if m := c.find(call); m != nil {
			a.Result = append([]chain.Receipt{}, m.receipts...)
		}
	default:
		a.Error = map[string]any{"code": -32601, "message": "the method does not exist"}
	}
	return a
}

// find returns the block that a call names.
func (c *Chain) find(call call) *made {
	var n chain.Quantity
	if err := json.Unmarshal(call.Params[0], &n); err != nil {
		return nil
	}
	return c.at(uint64(n))
}
