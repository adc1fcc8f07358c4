package entity

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"github.com/varvedb/varve/internal/packed"
)

// Digest is a hash over the history of a store. Each block's digest covers the
// digest before it, so equal digests mean equal histories: the same versions
// beginning and ending at the same blocks. It does not depend on the engine,
// the layout, or how operations were spread over a block.
type Digest [sha256.Size]byte

// String returns the digest as lower-case hex.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// MarshalText implements encoding.TextMarshaler: lower-case hex.
func (d Digest) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, d[:]), nil }

// UnmarshalText is the inverse of MarshalText.
func (d *Digest) UnmarshalText(text []byte) error {
	b, err := hex.AppendDecode(nil, text)
	if err != nil {
		return fmt.Errorf("digest %q: %w", text, err)
	}
	*d, err = DigestFromBytes(b)
	return err
}

// Next returns the digest after a changeset. A block without changes leaves it
// as it was. A Trace does not count as a change, because a pruned store no
// longer knows when to keep one, and must have the same digest as other stores.
func (d Digest) Next(set Changeset) Digest {
	if len(set.Changes) == 0 {
		return d
	}
	buf := append(make([]byte, 0, 64<<10), d[:]...)
	buf = binary.BigEndian.AppendUint64(buf, set.Block)
	before := len(buf)
	for i := range set.Changes {
		if c := &set.Changes[i]; c.New == nil || !c.New.Trace() {
			buf = appendChange(buf, c)
		}
	}
	if len(buf) == before {
		return d
	}
	return sha256.Sum256(buf)
}

// DigestFromBytes is the inverse of d[:].
func DigestFromBytes(b []byte) (d Digest, err error) {
	if len(b) != len(d) {
		return d, fmt.Errorf("digest of %d bytes, want %d", len(b), len(d))
	}
	return Digest(b), nil
}

func appendChange(buf []byte, c *Change) []byte {
	buf = append(buf, c.Key[:]...)
	if c.Old == nil {
		buf = append(buf, 0)
	} else {
		buf = append(buf, 1)
		buf = binary.BigEndian.AppendUint64(buf, c.Old.LastModifiedAtBlock)
	}
	if c.New == nil {
		return append(buf, 0)
	}
	return appendVersion(append(buf, 1), c.New)
}

// appendVersion writes a version so that different versions differ: fixed
// widths first, then every text with its length.
func appendVersion(buf []byte, e *Entity) []byte {
	var names [16]string
	buf = append(buf, e.Creator[:]...)
	buf = append(buf, e.Owner[:]...)
	buf = binary.BigEndian.AppendUint64(buf, e.Sequence)
	buf = binary.BigEndian.AppendUint64(buf, e.LastModifiedAtBlock)
	buf = binary.BigEndian.AppendUint64(buf, e.Expiration)
	content := sha256.Sum256(e.Content)
	buf = append(buf, content[:]...)
	buf = packed.AppendText(buf, e.ContentType)
	buf = binary.AppendUvarint(buf, uint64(len(e.StringAttributes)))
	for _, name := range packed.Names(names[:0], e.StringAttributes) {
		buf = packed.AppendText(buf, name)
		buf = packed.AppendText(buf, e.StringAttributes[name])
	}
	buf = binary.AppendUvarint(buf, uint64(len(e.NumericAttributes)))
	for _, name := range packed.Names(names[:0], e.NumericAttributes) {
		buf = packed.AppendText(buf, name)
		buf = binary.BigEndian.AppendUint64(buf, e.NumericAttributes[name])
	}
	return buf
}
