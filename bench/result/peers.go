package result

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// PeersFile is a file of a result set: what other programs do on questions of the
// catalogue, in the Go benchmark format. Its file configuration says of which experiment
// and of what: experiment and peer, and where there is something to say version, server
// (what answered, over which connection), date, command, machine and note. In names peer
// is a word that the figures are called by, and the other keys are those of our own
// records; a key that a line lacks may have any value there. Lines of one name are
// repetitions.
//
//	experiment: F2
//	peer: UmaDB from PyPI, defaults
//	version: 0.7.8
//	server: gRPC over loopback
//	date: 2026-11-23
//	BenchmarkPeer/peer=umadb/profile=small/clients=20 1000 3201 op/s
const PeersFile = "peers.txt"

// PeerKey is the key of a peer's word.
const PeerKey = "peer"

// Beside tells whether what a peer did is what a configuration measures.
func (r *Record) Beside(c Config) bool {
	for _, pair := range r.Config.Without(PeerKey) {
		if c.Get(pair.Key) != pair.Value {
			return false
		}
	}
	return true
}

// ReadPeers reads a PeersFile; name is for messages. It fails for a line that cannot be
// read, and for one of which it is not said what it is of.
func ReadPeers(r io.Reader, name string) ([]Record, error) {
	read, err := ReadBench(r, name)
	if err != nil {
		return nil, err
	}
	if len(read.Warnings) > 0 {
		return nil, errors.New(read.Warnings[0])
	}
	for i := range read.Records {
		p := &read.Records[i]
		switch {
		case p.Config.Get(PeerKey) == "":
			return nil, fmt.Errorf("%s: %s: its name has no %s=…", name, p.Key(), PeerKey)
		case p.Experiment == "":
			return nil, fmt.Errorf("%s: %s: no line %q before it", name, p.Key(), experimentKey+": …")
		case len(p.Notes) == 0:
			return nil, fmt.Errorf("%s: %s: no line %q before it, which says what that is", name, p.Key(), PeerKey+": …")
		}
	}
	return read.Records, nil
}

// readPeersFile reads peers if there are any.
func readPeersFile(path string) ([]Record, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ReadPeers(f, path)
}
