package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/cli"
	"github.com/varvedb/varve/schemas"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/event"
)

// TestNothingMade: commands that read make no database of a mistyped name, and those
// that write make none of a mistyped layout or parameter.
func TestNothingMade(t *testing.T) {
	feed := filepath.Join("..", "..", "testdata", "arkiv-small", "blocks.tar")
	require.FileExists(t, feed)
	const url, missing = "sqlite:DIR/typo.db", "check the name"
	for _, c := range []struct {
		says string
		args []string
	}{
		{missing, []string{"events", "read", url}},
		{missing, []string{"events", "tail", url}},
		{missing, []string{"events", "stats", url}},
		{missing, []string{"query", url, "*"}},
		{missing, []string{"inspect", url}},
		{missing, []string{"check", url}},
		{missing, []string{"check", "--repair", url}},
		{missing, []string{"backup", url, "DIR/bk"}},
		{missing, []string{"import", url, url + "2"}},
		{"unknown layout", []string{"import", feed, url + "?layout=compct"}},
		{"unknown layout", []string{"events", "append", url + "?layout=gin", os.DevNull}},
		{"unknown layout", []string{"import", "mendoza:scale=0.0001", url + "?layout=compct"}},
		{"durability", []string{"import", feed, url + "?durability=durabel"}},
		{"unknown", []string{"import", feed, url + "?durabilty=durable"}},
		{"unknown layout", []string{"serve", url, "--layout=compct", "--plaintext"}},
	} {
		t.Run(c.args[0]+" "+c.args[1]+" "+c.says, func(t *testing.T) {
			dir, args := t.TempDir(), slices.Clone(c.args)
			for i := range args {
				args[i] = strings.ReplaceAll(args[i], "DIR", dir)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second) // where a store is made, tail waits
			defer cancel()
			var out, errs bytes.Buffer
			want := cli.ExitError
			switch {
			case c.args[0] == "check":
				want = cli.ExitNotChecked
			case strings.ContainsAny(strings.Join(c.args, " "), "?="): // a mistake in a URL or a flag
				want = cli.ExitUsage
			}
			require.Equal(t, want, cli.Run(ctx, args, &out, &errs), errs.String())
			require.Contains(t, errs.String(), c.says)
			left, err := filepath.Glob(filepath.Join(dir, "*"))
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
}

// TestNewStore: a command that makes a store first prints its layout, which is
// compact by default. An existing store keeps its own. The lab's layouts open
// by name and are not listed.
func TestNewStore(t *testing.T) {
	require.Subset(t, schemas.Layouts(), []string{"compact", "arkiv", "simple"})
	require.NotContains(t, schemas.Layouts(), "bare")
	require.NotContains(t, schemas.Layouts(), "arkiv-7")
	taken, err := net.Listen("tcp", "127.0.0.1:0") // so that serve ends
	require.NoError(t, err)
	defer taken.Close()
	dir := t.TempDir()
	feed := filepath.Join("..", "..", "testdata", "arkiv-small", "blocks.tar")
	url := func(name string) string { return "sqlite:" + filepath.Join(dir, name) }
	for _, c := range []struct {
		layout string // of a new store, "" for none
		args   []string
	}{
		{"compact", []string{"import", feed, url("new")}},
		{"", []string{"import", feed, url("new")}},
		{"arkiv", []string{"import", feed, url("old") + "?layout=arkiv"}},
		{"", []string{"import", feed, url("old")}},
		{"bare", []string{"import", feed, url("bare") + "?layout=bare"}},
		{"compact", []string{"import", "mendoza:scale=0.0001", url("seed")}},
		{"compact", []string{"import", "--factor=2", feed, url("scale")}},
		{"", []string{"backup", url("old"), filepath.Join(dir, "backup")}},
		{"arkiv", []string{"restore", filepath.Join(dir, "backup"), url("restore")}},
		{"compact", []string{"follow", "http://127.0.0.1:1", "--attempts=1", url("follow")}},
		{"compact", []string{"serve", "--plaintext", "--listen", taken.Addr().String(), "--grpc=off", url("serve")}},
	} {
		_, _, errs := varve(c.args...)
		if c.layout == "" {
			require.NotContains(t, errs, "new store", "%v", c.args)
			continue
		}
		made, _, _ := strings.Cut(c.args[len(c.args)-1], "?")
		require.True(t, strings.HasPrefix(errs, "new store, layout "+c.layout+": "+made+"\n"), "%v: %s", c.args, errs)
	}
	_, out, _ := varve("inspect", url("old"))
	require.Contains(t, out, "arkiv")
}

// TestTail follows a store for reading only while another handle writes to it.
func TestTail(t *testing.T) {
	url := "sqlite:" + filepath.Join(t.TempDir(), "e.db")
	db, err := store.Open(t.Context(), url, nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	evs, err := db.Events(t.Context(), nil)
	require.NoError(t, err)
	add := func(typ string) {
		_, err := evs.Append(t.Context(), []event.Event{{Type: typ, Tags: []event.Tag{event.NewTag("k", "v")}}}, nil)
		require.NoError(t, err)
	}
	add("Before")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	r, w := io.Pipe()
	var errs bytes.Buffer
	done := make(chan int, 1)
	go func() {
		done <- cli.Run(ctx, []string{"events", "tail", "--from=1", url}, w, &errs)
		w.Close()
	}()
	lines := bufio.NewScanner(r)
	require.True(t, lines.Scan())
	require.Contains(t, lines.Text(), "Before")
	add("After")
	require.True(t, lines.Scan())
	require.Contains(t, lines.Text(), "After")
	stop()
	require.Equal(t, cli.ExitInterrupted, <-done, errs.String())
}
