package chain

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/varvedb/varve/store/entity"
)

// MaxBatch is the maximum number of calls in one request.
const MaxBatch = 50

// How many blocks one request asks for: largest, half of it, and so on down to
// one, and then the calls for that block one by one.
const (
	largest  = (MaxBatch - 1) / 2
	smallest = 5  // number of halvings of largest after which blocks are asked for call by call
	steady   = 16 // successful answers after which twice as many blocks are asked for
)

// The defaults of a Client.
const (
	DefaultTimeout   = 30 * time.Second
	DefaultMaxAnswer = 128 << 20
	firstPause       = 100 * time.Millisecond
	longestPause     = 15 * time.Second
)

// ErrRefused: the execution client refuses a request, and repeating it cannot
// help. ErrAnswer: its answer is malformed.
var (
	ErrRefused = errors.New("the execution client refuses the request")
	ErrAnswer  = errors.New("the execution client's answer is malformed")
)

// Client queries an execution client by JSON-RPC over HTTP. It repeats requests
// after failures that may be temporary – broken connections, HTTP 429 and 5xx,
// truncated answers, blocks that do not exist yet – after random and growing
// pauses.
type Client struct {
	URL string

	// HTTP sends the requests; nil means a new client with DefaultTimeout.
	HTTP *http.Client
	// MaxAnswer bounds an answer, in bytes; zero is DefaultMaxAnswer.
	MaxAnswer int64
	// Attempts is how often the smallest possible request is sent; zero means
	// until ctx ends.
	Attempts int
	// Retried, if given, is called with the reason for repeating a request.
	Retried func(err error)
	// Pause waits before repetition n (from 1), for at least least; nil means a
	// timer.
	Pause func(ctx context.Context, n int, least time.Duration) error

	halved   int // current number of halvings of largest
	answered int // successful requests for blocks since that changed
}

// call is a call in a request, and the destination of its result.
type call struct {
	method string
	params []any
	result any
}

// ChainID returns the chain's ID.
func (c *Client) ChainID(ctx context.Context) (uint64, error) {
	var id Quantity
	err := c.ask(ctx, call{"eth_chainId", nil, &id})
	return uint64(id), err
}

// BlockNumber returns the number of the chain's last block.
func (c *Client) BlockNumber(ctx context.Context) (uint64, error) {
	var n Quantity
	err := c.ask(ctx, call{"eth_blockNumber", nil, &n})
	return uint64(n), err
}

// Hash returns the hash of the block with a number, and false when there is none.
func (c *Client) Hash(ctx context.Context, number uint64) (h entity.Hash, ok bool, err error) {
	var header *struct {
		Hash entity.Hash `json:"hash"`
	}
	if err := c.ask(ctx, call{"eth_getBlockByNumber", []any{Quantity(number), false}, &header}); err != nil || header == nil {
		return h, false, err
	}
	return header.Hash, true, nil
}

// Linked is a block and the hash of its parent.
type Linked struct {
	entity.Block
	Parent entity.Hash
}

// Blocks returns between 1 and n blocks from a number on, and the number of the
// chain's last block. All n must exist. It checks the number and receipts of
// each.
//
// Execution clients limit requests and answers, and report that with many
// different codes and messages. So whenever a request for blocks fails, for
// whatever reason, the next one asks for fewer, and later ones for more again.
// It gives up only if the calls for a single block fail one by one.
//
// Only one goroutine at a time may call it.
func (c *Client) Blocks(ctx context.Context, from uint64, n int) (list []Linked, last uint64, err error) {
	err = c.retry(ctx, func() (less bool, err error) {
		asked := min(n, largest>>c.halved)
		if list, last, err = c.blocks(ctx, from, max(asked, 1), asked == 0); err == nil {
			// After a number of successful answers ask for more blocks again.
			if c.answered++; c.answered >= steady && c.halved > 0 {
				c.halved--
				c.answered = 0
			}
		} else if asked > 0 {
			// Ask for fewer blocks than last time.
			for c.halved < smallest && largest>>c.halved >= asked {
				c.halved++
			}
			c.answered = 0
		}
		return asked > 0, err
	})
	if err != nil {
		return nil, 0, err
	}
	return list, last, nil
}

// blocks asks once: in one request, or with apart in one request for each call.
func (c *Client) blocks(ctx context.Context, from uint64, n int, apart bool) (list []Linked, last uint64, err error) {
	var number Quantity
	blocks, receipts := make([]*Block, n), make([]*[]Receipt, n)
	calls := []call{{"eth_blockNumber", nil, &number}}
	for i := range n {
		at := Quantity(from + uint64(i))
		calls = append(calls,
			call{"eth_getBlockByNumber", []any{at, true}, &blocks[i]},
			call{"eth_getBlockReceipts", []any{at}, &receipts[i]})
	}
	size := len(calls)
	if apart {
		size = 1
	}
	for part := range slices.Chunk(calls, size) {
		if err := c.send(ctx, part); err != nil {
			return nil, 0, err
		}
	}
	for i, b := range blocks {
		at := from + uint64(i)
		if b == nil || receipts[i] == nil {
			return nil, 0, fmt.Errorf("block %d: %w: the block or its receipts are missing", at, ErrReceipts)
		}
		if uint64(b.Number) != at {
			return nil, 0, fmt.Errorf("block %d: %w: it has number %d", at, ErrAnswer, b.Number)
		}
		block, err := Decode(b, *receipts[i])
		if err != nil {
			return nil, 0, err
		}
		list = append(list, Linked{block, b.ParentHash})
	}
	return list, uint64(number), nil
}

// ask sends calls until they are answered.
func (c *Client) ask(ctx context.Context, calls ...call) error {
	return c.retry(ctx, func() (bool, error) { return false, c.send(ctx, calls) })
}

// retry repeats f until it succeeds, or fails permanently. If f will ask for
// less next time, that is a new request and does not count as an attempt.
func (c *Client) retry(ctx context.Context, f func() (less bool, err error)) error {
	for failed, attempts := 1, 1; ; failed++ {
		less, err := f()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case less:
		case slices.ContainsFunc(finals, func(cause error) bool { return errors.Is(err, cause) }):
			return err
		case attempts == c.Attempts:
			return fmt.Errorf("asked %d times: %w", attempts, err)
		default:
			attempts++
		}
		if c.Retried != nil {
			c.Retried(err)
		}
		if err := c.pause(ctx, failed, err); err != nil {
			return err
		}
	}
}

// finals are the errors that repeating cannot fix. Contradictory answers are
// not among them, because a reorganisation between two calls looks the same.
var finals = []error{ErrRefused, ErrTooLarge, ErrCompression, ErrRLP, ErrTooMany, ErrDuplicate}

// pause waits before repetition n, at least as long as the error asks for.
func (c *Client) pause(ctx context.Context, n int, err error) error {
	least := time.Duration(0)
	var busy *busyError
	if errors.As(err, &busy) {
		least = busy.after
	}
	if c.Pause != nil {
		return c.Pause(ctx, n, least)
	}
	d := min(firstPause<<min(n-1, 10), longestPause)
	return sleep(ctx, max(least, d/2+rand.N(d/2)))
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// busyError is an answer that asks the client to try later.
type busyError struct {
	status string
	after  time.Duration
}

// Error implements error.
func (e *busyError) Error() string { return "the execution client answers " + e.status }

type request struct {
	Version string `json:"jsonrpc"`
	ID      int    `json:"id"`
	Method  string `json:"method"`
	Params  []any  `json:"params"`
}

type response struct {
	ID     *int            `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// send makes one request and decodes its answer. A single call is not sent as a
// batch, because some execution clients refuse that.
func (c *Client) send(ctx context.Context, calls []call) error {
	batch := make([]request, len(calls))
	for i, call := range calls {
		batch[i] = request{Version: "2.0", ID: i, Method: call.method, Params: call.params}
		if call.params == nil {
			batch[i].Params = []any{}
		}
	}
	var message any = batch
	if len(batch) == 1 {
		message = batch[0]
	}
	body, err := json.Marshal(message)
	if err != nil {
		return err
	}
	answer, err := c.post(ctx, body)
	if err != nil {
		return err
	}
	var list []response
	if err := json.Unmarshal(answer, &list); err != nil {
		var one response
		if wrong := json.Unmarshal(answer, &one); wrong != nil {
			return fmt.Errorf("%w: %w", ErrAnswer, err)
		}
		if one.Error != nil {
			return one.failure(calls[0].method) // or of the whole batch
		}
		list = []response{one}
	}
	seen := make([]bool, len(calls))
	for i := range list {
		r := &list[i]
		if r.ID == nil || *r.ID < 0 || *r.ID >= len(calls) || seen[*r.ID] {
			return fmt.Errorf("%w: an answer to no request, or a second one", ErrAnswer)
		}
		seen[*r.ID] = true
		c := &calls[*r.ID]
		if r.Error != nil {
			return r.failure(c.method)
		}
		if len(r.Result) == 0 {
			return fmt.Errorf("%w: %s: neither result nor error", ErrAnswer, c.method)
		}
		if err := json.Unmarshal(r.Result, c.result); err != nil {
			return fmt.Errorf("%w: %s: %w", ErrAnswer, c.method, err)
		}
	}
	if len(list) != len(calls) {
		return fmt.Errorf("%w: %d answers to %d calls", ErrAnswer, len(list), len(calls))
	}
	return nil
}

// tooMuch matches errors about the length of an answer, whatever their code is,
// but not errors about too many requests.
var tooMuch = regexp.MustCompile(`(?i)\btoo (large|big|long)\b|\b(size|results?)\b.*\b(exceed|limit)|more than \d+ results`)

// failure returns the error of a call. The codes -32600 to -32602 and -32700
// mean that the request is wrong, so repeating it cannot help.
func (r *response) failure(what string) error {
	err := fmt.Errorf("%s: error %d: %.200s", what, r.Error.Code, r.Error.Message)
	switch r.Error.Code {
	case -32600, -32601, -32602, -32700:
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	if tooMuch.MatchString(r.Error.Message) {
		return fmt.Errorf("%w: %w", ErrTooLarge, err)
	}
	return err
}

var ownHTTP = &http.Client{Timeout: DefaultTimeout}

func (c *Client) post(ctx context.Context, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRefused, hideURL(err))
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := cmp.Or(c.HTTP, ownHTTP).Do(req)
	if err != nil {
		return nil, hideURL(err)
	}
	defer res.Body.Close()
	if err := status(res); err != nil {
		return nil, err
	}
	limit := cmp.Or(c.MaxAnswer, DefaultMaxAnswer)
	answer, err := io.ReadAll(io.LimitReader(res.Body, limit+1))
	if err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	if int64(len(answer)) > limit {
		return nil, fmt.Errorf("%w: an answer above %d bytes", ErrTooLarge, limit)
	}
	return answer, nil
}

// status returns the error for an HTTP status other than success.
func status(res *http.Response) error {
	code := res.StatusCode
	switch {
	case code == http.StatusOK:
		return nil
	case code == http.StatusRequestEntityTooLarge:
		return fmt.Errorf("%w: the execution client answers %s", ErrTooLarge, res.Status)
	case code == http.StatusTooManyRequests, code == http.StatusRequestTimeout, code >= 500:
		seconds, _ := strconv.ParseUint(res.Header.Get("Retry-After"), 10, 16) // or a date, or nothing
		return &busyError{status: res.Status, after: min(time.Duration(seconds)*time.Second, time.Minute)}
	}
	return fmt.Errorf("%w: HTTP %s", ErrRefused, res.Status)
}

// hideURL removes the URL from an error, because services put keys into URLs.
func hideURL(err error) error {
	var with *url.Error
	if errors.As(err, &with) {
		return fmt.Errorf("ask the execution client: %w", with.Err)
	}
	return err
}
