// Package seal encrypts payloads with AES-256-GCM under keys that rotate. A
// sealed payload names its key, and is bound to the entity that it belongs to:
// moved to another entity, it does not open.
//
// The form of a sealed payload:
//
//	"varvesl" 0x01   what it is, and the version of the form
//	8 bytes          key ID
//	12 bytes         random nonce
//	…                ciphertext
//	16 bytes         authentication tag, over the ciphertext, the 16 bytes at the
//	                 front and the entity's key
package seal

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
)

// The sizes of the parts, in bytes.
const (
	KeySize   = 32
	idSize    = 8
	nonceSize = 12
	tagSize   = 16

	// Overhead is by how much a sealed payload is longer than the payload.
	Overhead = len(magic) + idSize + nonceSize + tagSize
)

// magic begins every sealed payload.
const magic = "varvesl\x01"

// Why a payload does not open, for errors.Is. Nothing of the payload is returned
// with any of them.
var (
	ErrUnknownKey = errors.New("payload is sealed with a key that is not loaded")
	ErrTampered   = errors.New("payload was changed, moved from another entity, or sealed with another key of the same ID")
	ErrNotSealed  = errors.New("payload is not sealed")
	ErrKey        = errors.New("not a key")
)

// ID tells keys apart. It is a hash of the key and says nothing about it.
type ID [idSize]byte

// String returns the ID as lower-case hex.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// Keyring seals with its newest key and opens with any. It may be used from
// several goroutines.
type Keyring struct {
	newest ID
	keys   map[ID]cipher.AEAD
}

// New returns a keyring of keys of 32 bytes, the newest last.
func New(keys ...[]byte) (*Keyring, error) {
	if len(keys) == 0 {
		return nil, fmt.Errorf("%w: there is none", ErrKey)
	}
	r := &Keyring{keys: make(map[ID]cipher.AEAD, len(keys))}
	for i, key := range keys {
		if len(key) != KeySize {
			return nil, fmt.Errorf("%w: key %d has %d bytes, want %d", ErrKey, i+1, len(key), KeySize)
		}
		block, err := aes.NewCipher(key)
		if err != nil {
			return nil, fmt.Errorf("key %d: %w", i+1, err)
		}
		// It draws the nonce itself, so that no caller can repeat one.
		aead, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			return nil, fmt.Errorf("key %d: %w", i+1, err)
		}
		r.newest = identify(key)
		r.keys[r.newest] = aead
	}
	return r, nil
}

// identify hashes a key under a name of its own, so that the ID is no hash that
// something else may use as a secret.
func identify(key []byte) (id ID) {
	sum := sha256.Sum256(append([]byte("varve key id\x00"), key...))
	copy(id[:], sum[:])
	return id
}

// Newest returns the ID of the key that seals.
func (r *Keyring) Newest() ID { return r.newest }

// Len returns the number of keys.
func (r *Keyring) Len() int { return len(r.keys) }

// Seal encrypts a payload for an owner, which is the entity's key.
func (r *Keyring) Seal(owner, payload []byte) []byte {
	header := make([]byte, 0, Overhead+len(payload))
	header = append(append(header, magic...), r.newest[:]...)
	return r.keys[r.newest].Seal(header, nil, payload, bound(header, owner))
}

// Open decrypts what Seal returned for the same owner. It fails with
// ErrNotSealed, ErrUnknownKey or ErrTampered, and then returns nothing else.
func (r *Keyring) Open(owner, sealed []byte) ([]byte, error) {
	if !IsSealed(sealed) {
		return nil, ErrNotSealed
	}
	if len(sealed) < Overhead {
		return nil, fmt.Errorf("%w: it has %d bytes, a sealed one has at least %d", ErrTampered, len(sealed), Overhead)
	}
	header, rest := sealed[:len(magic)+idSize], sealed[len(magic)+idSize:]
	id := ID(header[len(magic):])
	aead, ok := r.keys[id]
	if !ok {
		return nil, fmt.Errorf("%w: key %s", ErrUnknownKey, id)
	}
	payload, err := aead.Open(nil, nil, rest, bound(header, owner))
	if err != nil {
		return nil, ErrTampered
	}
	return payload, nil
}

// bound is what is authenticated beside the payload.
func bound(header, owner []byte) []byte {
	return append(append(make([]byte, 0, len(header)+len(owner)), header...), owner...)
}

// IsSealed tells whether a stored payload claims to be sealed.
func IsSealed(stored []byte) bool { return bytes.HasPrefix(stored, []byte(magic)) }
