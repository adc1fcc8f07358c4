package chaintest

import (
	"bytes"
	"encoding/json"
	"io"
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

// Limit is what an execution client takes for too much, and how it says so.
type Limit struct {
	Calls int // of a request; 1 means that a batch is refused, also one of a single call
	Bytes int // of an answer

	Status  int    // of HTTP; zero: 200, with an error
	Code    int    // of that error
	Message string // of it
	Partly  bool   // the calls as far as the answer goes are answered, the others have the error
}

// Limit sets what is too much; nil for nothing.
func (c *Chain) Limit(l *Limit) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.limit, c.asked = l, 0
}

// Asked returns how many requests came since Faults, or Limit.
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

// ServeHTTP implements http.Handler: JSON-RPC, a call or a batch of up to 50.
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
	calls, batch, err := read(r.Body)
	if err != nil || len(calls) > 50 {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	answers := make([]answer, len(calls))
	for i, call := range calls {
		// From the last to the first: a batch has no order.
		answers[len(calls)-1-i] = c.answer(call, fault)
	}
	var body []byte
	if l := c.limit; l != nil && l.exceeded(answers, batch) {
		if l.Status != 0 {
			w.WriteHeader(l.Status)
			return
		}
		body = l.refuse(answers, batch)
	} else if batch {
		body = text(answers)
	} else {
		body = text(answers[0])
	}
	if fault == Truncated {
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		body = body[:len(body)/2]
	}
	_, _ = w.Write(body)
}

// read reads a call or a batch.
func read(from io.Reader) (calls []call, batch bool, err error) {
	body, err := io.ReadAll(from)
	if err != nil {
		return nil, false, err
	}
	if bytes.HasPrefix(body, []byte("[")) {
		return calls, true, json.Unmarshal(body, &calls)
	}
	calls = make([]call, 1)
	return calls, false, json.Unmarshal(body, &calls[0])
}

func text(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

func (l *Limit) exceeded(answers []answer, batch bool) bool {
	return batch && l.Calls > 0 && (len(answers) > l.Calls || l.Calls == 1) || l.Bytes > 0 && len(text(answers)) > l.Bytes
}

func (l *Limit) refuse(answers []answer, batch bool) []byte {
	wrong := &failure{l.Code, l.Message}
	if !l.Partly || !batch {
		return text(answer{Version: "2.0", Error: wrong})
	}
	size := 0
	for i := range answers {
		if size += len(text(answers[i])); i >= l.Calls && l.Calls > 0 || size > l.Bytes && l.Bytes > 0 {
			answers[i].Result, answers[i].Error = nil, wrong
		}
	}
	return text(answers)
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
