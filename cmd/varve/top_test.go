package main

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gdamore/tcell/v2"
	"github.com/hinshun/vt10x"
	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/cli"
	"github.com/varvedb/varve/internal/top"
)

// terminal is an emulated terminal that keys can be pressed at.
type terminal struct {
	vt10x.Terminal
	keys *io.PipeReader
}

func (terminal) Start() error                 { return nil }
func (terminal) Stop() error                  { return nil }
func (terminal) NotifyResize(func())          {}
func (t terminal) Drain() error               { return t.keys.Close() }
func (t terminal) Close() error               { return t.keys.Close() }
func (t terminal) Read(b []byte) (int, error) { return t.keys.Read(b) }
func (terminal) WindowSize() (tcell.WindowSize, error) {
	return tcell.WindowSize{Width: 80, Height: 24}, nil
}

// TestTop: a terminal shows what a service does, and a key ends it; without a terminal
// the same is printed.
func TestTop(t *testing.T) {
	rest, _, stop := serve(t, url(t, "s.db"), "--layout=compact", "--plaintext", "--listen=127.0.0.1:0", "--grpc=127.0.0.1:0")
	defer func() { require.Equal(t, cli.ExitOK, stop()) }()
	ctx, done := context.WithCancel(t.Context())
	writing := make(chan struct{})
	defer func() { done(); <-writing }()
	go func() {
		defer close(writing)
		for ctx.Err() == nil {
			req, _ := http.NewRequestWithContext(ctx, http.MethodPut, "http://"+rest+"/v1/entities/0x"+strings.Repeat("01", 32)+"/payload?s.type=note", strings.NewReader("hello"))
			req.Header.Set("Content-Type", "text/plain")
			if resp, err := http.DefaultClient.Do(req); err == nil {
				_ = resp.Body.Close()
			}
		}
	}()

	text := must(t, "top", "http://"+rest+"/metrics", "--every=50ms", "--count=2")
	require.Equal(t, 2, strings.Count(text, "commits "))
	require.Regexp(t, `rest put +[\d,.]+ `, text)
	require.NotRegexp(t, `log -|database -|memory -|backlog -|NaN`, text)

	t.Setenv("TERM", "xterm-256color")
	keys, press := io.Pipe()
	term := terminal{Terminal: vt10x.New(vt10x.WithSize(80, 24)), keys: keys}
	screen, err := tcell.NewTerminfoScreenFromTty(term)
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- top.Show(t.Context(), screen, top.Source{URL: "http://" + rest}, 20*time.Millisecond) }()
	require.Eventually(t, func() bool { return strings.Contains(term.String(), "rest put") }, 20*time.Second, 5*time.Millisecond)
	shown := term.String()
	require.Contains(t, shown, "varve ")
	require.Regexp(t, `head +block \d`, shown)
	t.Log("\n" + shown)
	_, err = press.Write([]byte("q"))
	require.NoError(t, err)
	require.NoError(t, <-ended)

	_, errs, code := varve(t, "top", "http://127.0.0.1:1", "--count=1")
	require.Equal(t, cli.ExitError, code)
	require.Contains(t, errs, "refused")
}
