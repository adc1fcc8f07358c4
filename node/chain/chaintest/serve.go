package chaintest

import (
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/varvedb/varve/node/chain"
)

// Fault is what goes wrong with an answer.
type Fault int

// The faults.
const (
	None          Fault = iota
	Busy                // HTTP 429
	Broken              // HTTP 503
	Truncated           // the answer ends half-way
	NoReceipts          // the receipts are null
	FewReceipts         // one receipt is missing
	OtherReceipts       // the receipts are of another block
	NoBlock             // the block is null
	Garbage             // no JSON
	Hangup              // the connection is closed
	Refused             // HTTP 401
)

// Faults sets what goes wrong with the nth request, from 0.
func (c *Chain) Faults(fault func(n int) Fault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fault, c.asked = fault, 0
}

// Asked returns how many requests came since Faults.
func (c *Chain) Asked() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked
}

type call struct {
	ID     json.RawMessage   `json:"id"`
	Method string            `json:"method"`
	Params []json.RawMessage `json:"params"`
}

type answer struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  any             `json:"result"`
	Error   *failure        `json:"error,omitempty"`
}

type failure struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// ServeHTTP implements http.Handler: JSON-RPC in batches of up to 50.
func (c *Chain) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fault := None
	if c.fault != nil {
		fault = c.fault(c.asked)
	}
	c.asked++
	switch fault {
	case Busy:
		w.WriteHeader(http.StatusTooManyRequests)
		return
	case Broken:
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	case Refused:
		w.WriteHeader(http.StatusUnauthorized)
		return
	case Garbage:
		_, _ = w.Write([]byte("<html>"))
		return
	case Hangup:
		panic(http.ErrAbortHandler)
	}
	var calls []call
	if err := json.NewDecoder(r.Body).Decode(&calls); err != nil || len(calls) > 50 {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	answers := make([]answer, len(calls))
	for i, call := range calls {
		// From the last to the first: a batch has no order.
		answers[len(calls)-1-i] = c.answer(call, fault)
	}
	body, err := json.Marshal(answers)
	if err != nil {
		panic(err)
	}
	if fault == Truncated {
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		body = body[:len(body)/2]
	}
	_, _ = w.Write(body)
}

func (c *Chain) answer(call call, fault Fault) answer {
	a := answer{Version: "2.0", ID: call.ID}
	switch call.Method {
	case "eth_chainId":
		a.Result = chain.Quantity(c.ID)
	case "eth_blockNumber":
		a.Result = chain.Quantity(c.last())
	case "eth_getBlockByNumber":
		if m := c.find(call); m != nil && fault != NoBlock {
			block := m.block
			if string(call.Params[1]) == "false" {
				block.Transactions = nil
			}
			a.Result = block
		}
	case "eth_getBlockReceipts":
		if m := c.find(call); m != nil {
			a.Result = broken(m.receipts, fault)
		}
	default:
		a.Error = &failure{-32601, "the method does not exist"}
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

func broken(receipts []chain.Receipt, fault Fault) any {
	list := append([]chain.Receipt{}, receipts...)
	switch {
	case fault == NoReceipts:
		return nil
	case fault == FewReceipts && len(list) > 0:
		return list[1:]
	case fault == OtherReceipts:
		for i := range list {
			list[i].BlockHash[0]++
		}
	}
	return list
}
