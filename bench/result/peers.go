package result

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/perf/benchfmt"
)

// PeersFile is a file of a result set, written by hand or by other programs' benchmarks:
// what others do on questions of the catalogue, in the Go benchmark format. Its file
// configuration says what was measured: experiment, peer, version and date, and where
// there is something to say server (what answered, and over which connection) and note.
// A line has the name and the config of the benchmark that it stands beside; a key that
// it lacks may have any value there. Lines of one name are repetitions.
//
//	experiment: F2
//	peer: umadb
//	version: 0.7.8
//	server: umadb, gRPC over loopback
//	date: 2026-11-23
//	BenchmarkEventAppendConcurrent/profile=small/clients=20 1000 3201 op/s
const PeersFile = "peers.txt"

// Peer is a figure of another program.
type Peer struct {
	Record

	Peer, Version, Server, Date, Note string
}

// Beside tells whether what a peer did is what a configuration measures.
func (p *Peer) Beside(c Config) bool {
	for _, pair := range p.Config {
		if c.Get(pair.Key) != pair.Value {
			return false
		}
	}
	return true
}

// ReadPeers reads a PeersFile; name is for messages. It fails for a line that cannot be
// read, and for one of which it is not said what it is of.
func ReadPeers(r io.Reader, name string) ([]Peer, error) {
	var list []Peer
	repeats := make(map[string]int)
	in := benchfmt.NewReader(r, name)
	for in.Scan() {
		switch line := in.Result().(type) {
		case *benchfmt.SyntaxError:
			return nil, line
		case *benchfmt.Result:
			p := Peer{
				Record: record(line), Peer: line.GetConfig("peer"), Version: line.GetConfig("version"),
				Server: line.GetConfig("server"), Date: line.GetConfig("date"), Note: line.GetConfig("note"),
			}
			for _, key := range []string{experimentKey, "peer", "version", "date"} {
				if line.GetConfig(key) == "" {
					return nil, fmt.Errorf("%s: %s: no line %q before it", name, p.Key(), key+": …")
				}
			}
			id := p.Peer + " " + p.Key()
			p.Repeat = repeats[id]
			repeats[id]++
			list = append(list, p)
		}
	}
	return list, in.Err()
}

// readPeersFile reads peers if there are any.
func readPeersFile(path string) (list []Peer, err error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	list, err = ReadPeers(f, path)
	return list, cmp.Or(err, f.Close())
}
