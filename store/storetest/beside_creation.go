package storetest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	process "os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
)

// creation is how several open one database that is no store yet.
type creation struct {
	name    string
	layouts [2]string
	events  bool // there are events already
}

var creations = []creation{
	{"one layout", [2]string{"compact", "compact"}, false},
	{"two layouts", [2]string{"arkiv", "compact"}, false},
	{"one layout beside events", [2]string{"arkiv", "arkiv"}, true},
	{"two layouts beside events", [2]string{"arkiv", "compact"}, true},
}

// testCreation: of two handles that open one new database at once both succeed with
// one layout, and one with two; the other is told both names.
func testCreation(t *testing.T, h Harness) {
	for _, c := range creations {
		t.Run(c.name, func(t *testing.T) {
			for range (*trials + 4) / 5 {
				url := c.database(t, h)
				var errs [2]error
				var together sync.WaitGroup
				for i, layout := range c.layouts {
					together.Go(func() { errs[i] = openAndApply(url, layout, uint64(i)) })
				}
				together.Wait()
				c.require(t, url, errs[:])
			}
		})
	}
}

// database returns the URL of one that holds no entities.
func (c creation) database(t *testing.T, h Harness) string {
	url := h.quickURL(t)
	if c.events {
		db := mustOpen(t, url, nil)
		eventsOf(t, db, store.EventOptions{})
		require.NoError(t, db.Close())
	}
	return url
}

// openAndApply opens a store and applies a block to it, as many times as another
// one's block comes first.
func openAndApply(url, layout string, entity uint64) (err error) {
	ctx := context.Background()
	db, err := store.Open(ctx, url, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	ents, err := db.Entities(ctx, store.EntityOptions{Layout: layout})
	for number := uint64(1); err == nil; number++ {
		_, err = ents.Apply(ctx, newBlock(number, on(fmt.Sprint("by ", entity), opCreate(1000))))
		if err == nil {
			return nil
		}
		if errors.Is(err, store.ErrBlockOrder) {
			err = nil
		}
	}
	return err
}

// require compares the outcomes with what the store then holds. On an engine that
// lets one handle have a file, the other may be refused.
func (c creation) require(t *testing.T, url string, errs []error) {
	t.Helper()
	several := linkedDriver(t, url).Capabilities.MultiProcess
	opened, refused := 0, 0
	for _, err := range errs {
		switch {
		case err == nil:
			opened++
		case errors.Is(err, store.ErrLayout) && c.layouts[0] != c.layouts[1]:
			require.Contains(t, err.Error(), c.layouts[0])
			require.Contains(t, err.Error(), c.layouts[1])
			refused++
		default:
			require.False(t, several, "%v", err)
			require.ErrorIs(t, err, store.ErrLocked)
		}
	}
	if several {
		require.Equal(t, c.layouts[0] != c.layouts[1], refused == 1, "%v", errs)
		require.Equal(t, 2, opened+refused)
	}
	require.NotZero(t, opened)
	db := mustOpen(t, url, nil)
	ents := entitiesOf(t, db, store.EntityOptions{})
	s := snapshotAt(t, ents, store.Head)
	require.Len(t, everything(t, s), opened, "nobody's block is lost")
	require.NoError(t, s.Close())
	require.NoError(t, db.Close())
}

// racerVar names, for a second process of a test, the URL and the layout that it
// opens.
const racerVar = "VARVE_TEST_RACER"

// testCreationByProcesses is testCreation across processes.
func testCreationByProcesses(t *testing.T, h Harness) {
	if racer := os.Getenv(racerVar); racer != "" {
		race(t, racer)
		return
	}
	if !linkedDriver(t, h.NewURL(t)).Capabilities.MultiProcess {
		t.Skip("one process at a time may have a database of this engine")
	}
	for _, c := range creations[:2] {
		t.Run(c.name, func(t *testing.T) {
			for range (*trials + 9) / 10 {
				url := c.database(t, h)
				var racers [2]*racer
				for i, layout := range c.layouts {
					racers[i] = startRacer(t, fmt.Sprint(layout, " ", i, " ", url))
				}
				errs := make([]error, 2)
				for _, r := range racers {
					require.NoError(t, r.start.Close())
				}
				for i, r := range racers {
					errs[i] = r.verdict()
				}
				c.require(t, url, errs)
			}
		})
	}
}

// race is what the second process does: it waits until its input ends.
func race(t *testing.T, what string) {
	var layout, url string
	var entity uint64
	_, err := fmt.Sscan(what, &layout, &entity, &url)
	require.NoError(t, err)
	fmt.Fprintln(os.Stdout, "racer: ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
	err = openAndApply(url, layout, entity)
	if errors.Is(err, store.ErrLayout) {
		fmt.Fprintln(os.Stdout, "racer: layout:", err)
		return
	}
	require.NoError(t, err)
}

type racer struct {
	cmd   *process.Cmd
	start io.Closer
	out   *strings.Builder
	ready chan struct{}
	done  chan struct{}
}

func startRacer(t *testing.T, what string) *racer {
	name := t.Name()[:strings.LastIndex(t.Name(), "/")]
	pattern := "^" + strings.ReplaceAll(name, "/", "$/^") + "$"
	args := []string{"-test.run=" + pattern}
	flag.Visit(func(f *flag.Flag) { // those of the package, which may say where the suite is
		if !strings.HasPrefix(f.Name, "test.") {
			args = append(args, "-"+f.Name+"="+f.Value.String())
		}
	})
	r := &racer{cmd: process.Command(os.Args[0], args...), out: &strings.Builder{}, ready: make(chan struct{}), done: make(chan struct{})}
	r.cmd.Env = append(os.Environ(), racerVar+"="+what)
	in, err := r.cmd.StdinPipe()
	require.NoError(t, err)
	r.start = in
	out, err := r.cmd.StdoutPipe()
	require.NoError(t, err)
	r.cmd.Stderr = os.Stderr
	require.NoError(t, r.cmd.Start())
	t.Cleanup(func() { _ = in.Close(); _ = r.cmd.Wait() })
	go func() {
		defer close(r.done)
		buf := make([]byte, 4096)
		for {
			n, err := out.Read(buf)
			was := strings.Contains(r.out.String(), "racer: ready")
			r.out.Write(buf[:n])
			if !was && strings.Contains(r.out.String(), "racer: ready") {
				close(r.ready)
			}
			if err != nil {
				return
			}
		}
	}()
	select {
	case <-r.ready:
	case <-r.done:
		t.Fatalf("the second process ended early: %s", r.out)
	}
	return r
}

func (r *racer) verdict() error {
	<-r.done
	err := r.cmd.Wait()
	if _, message, refused := strings.Cut(r.out.String(), "racer: layout:"); refused {
		return fmt.Errorf("%w: %s", store.ErrLayout, message)
	}
	if err != nil {
		return fmt.Errorf("%w: %s", err, r.out)
	}
	return nil
}
