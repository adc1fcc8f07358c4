package sqlite_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/entity"
)

// compactCrashEnv names the database that a child process applies blocks to
// until it is killed.
const compactCrashEnv = "VARVE_TEST_COMPACT_CRASH"

// crashBlock is a block of a stream in which every entity changes again and
// again, so that what a merge has half done matters.
func crashBlock(number uint64) entity.Block {
	b := entity.Block{Number: number}
	for i := range uint64(8) {
		n := number*8 + i
		op := entity.Op{
			Kind: entity.Update, OpIndex: uint32(i), BTL: 100 + n%50, Owner: entity.Address{byte(n % 3)},
			Key:               entity.Key{0: byte(n % 40)},
			Content:           []byte(fmt.Sprint("payload ", n)),
			StringAttributes:  map[string]string{"state": fmt.Sprint(n % 7), "unique": fmt.Sprint(n)},
			NumericAttributes: map[string]uint64{"n": n},
		}
		if n < 40+8 { // the first block is block 1
			op.Kind = entity.Create
		}
		b.Ops = append(b.Ops, op)
	}
	return b
}

// TestCompactCrash kills a process while it applies blocks and merges in the
// background. What it acknowledged is there, and the store agrees with itself
// at every point at which it is opened again.
func TestCompactCrash(t *testing.T) {
	if url := os.Getenv(compactCrashEnv); url != "" {
		applyUntilKilled(t, url)
		return
	}
	url := "sqlite://" + t.TempDir() + "/varve.db?layout=compact"
	for round, backlog := range []int{5, 40, 300, 10} {
		acknowledged := killWhileApplying(t, url+"&backlog="+strconv.Itoa(backlog), 60+40*round)
		checkAfterCrash(t, url+"&backlog="+strconv.Itoa(1+round), acknowledged)
	}
}

func applyUntilKilled(t *testing.T, url string) {
	db, err := store.Open(context.Background(), url, nil)
	require.NoError(t, err)
	ents, err := db.Entities(context.Background(), nil)
	require.NoError(t, err)
	head, err := ents.Head(context.Background())
	require.NoError(t, err)
	for number := head.Number + 1; ; number++ {
		if _, err := ents.Apply(context.Background(), crashBlock(number)); err != nil {
			panic(err)
		}
		if number%7 == 0 { // in the way of the background, or before it
			if err := ents.Flush(context.Background()); err != nil {
				panic(err)
			}
		}
		if _, err := io.WriteString(os.Stdout, fmt.Sprintf("acknowledged %d\n", number)); err != nil {
			return // the parent is gone
		}
	}
}

// killWhileApplying runs the child and kills it after it has acknowledged some
// blocks. It returns the last of them.
func killWhileApplying(t *testing.T, url string, blocks int) (last uint64) {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run=^TestCompactCrash$")
	child.Env = append(os.Environ(), compactCrashEnv+"="+url)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	seen := 0
	for lines := bufio.NewScanner(out); lines.Scan(); {
		number, ok := strings.CutPrefix(lines.Text(), "acknowledged ")
		if !ok {
			continue
		}
		last, err = strconv.ParseUint(number, 10, 64)
		require.NoError(t, err)
		if seen++; seen == blocks {
			require.NoError(t, child.Process.Kill())
		}
	}
	require.Error(t, child.Wait(), "the child was killed")
	require.GreaterOrEqual(t, seen, blocks)
	return last
}

// checkAfterCrash compares the store with one that applied the same blocks, as
// it is opened and after everything is merged.
func checkAfterCrash(t *testing.T, url string, acknowledged uint64) {
	t.Helper()
	db, err := store.Open(t.Context(), url, nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	ents, err := db.Entities(t.Context(), nil)
	require.NoError(t, err)
	head, err := ents.Head(t.Context())
	require.NoError(t, err)
	require.GreaterOrEqual(t, head.Number, acknowledged)

	other, err := store.Open(t.Context(), "sqlite://"+t.TempDir()+"/varve.db?layout=arkiv&durability=unsafe", nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, other.Close()) }()
	want, err := other.Entities(t.Context(), nil)
	require.NoError(t, err)
	for number := uint64(1); number <= head.Number; number++ {
		_, err := want.Apply(t.Context(), crashBlock(number))
		require.NoError(t, err)
	}
	for range 2 {
		_, err = ents.Verify(t.Context())
		require.NoError(t, err)
		wantHead, err := want.Head(t.Context())
		require.NoError(t, err)
		require.Equal(t, wantHead, head)
		for _, block := range []uint64{head.Number, head.Number / 2, head.Number - 1} {
			require.Equal(t, allAt(t, want, block), allAt(t, ents, block))
		}
		require.NoError(t, ents.Flush(t.Context()))
	}
}

func allAt(t *testing.T, ents *store.Entities, block uint64) (all []entity.Entity) {
	t.Helper()
	s, err := ents.At(t.Context(), block)
	require.NoError(t, err)
	defer s.Close()
	for e, err := range s.Query(t.Context(), nil, nil) {
		require.NoError(t, err)
		all = append(all, *e)
	}
	return all
}
