// Package seal encrypts payloads with AES-256-GCM under keys that rotate. A
// sealed payload names its key, and is bound to the entity or event that it belongs
// to: moved to another one, it does not open.
//
// The form of a sealed payload:
//
//	"varvesl" 0x01   magic bytes, and the version of the form
//	8 bytes          key ID
//	12 bytes         nonce, random or derived from the payload
//	…                ciphertext
//	16 bytes         authentication tag, over the ciphertext, the 16 bytes at the
//	                 front and the owner: the entity's key, or the identity of an event
package seal

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
)

// The sizes of the parts, in bytes.
const (
	KeySize   = 32
	idSize    = 8
	nonceSize = 12
	tagSize   = 16

	// Overhead is how much longer a sealed payload is than the payload.
	Overhead = len(magic) + idSize + nonceSize + tagSize
)

// magic begins every sealed payload.
const magic = "varvesl\x01"

// The reasons why a payload cannot be opened, for errors.Is. No part of the
// payload is returned with them.
var (
	ErrUnknownKey = errors.New("payload is sealed with a key that is not loaded")
	ErrTampered   = errors.New("payload was changed, moved from another entity or event, or sealed with another key of the same ID")
	ErrNotSealed  = errors.New("payload is not sealed")
	ErrKey        = errors.New("not a key")
)

// ID identifies a key. It is a hash of the key and does not reveal it.
type ID [idSize]byte

// String returns the ID as lower-case hex.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// Keyring seals with its newest key and opens with any. It may be used from
// several goroutines.
type Keyring struct {
	order []ID // the newest first
	keys  map[ID]*key
}

// key is a key with the keys derived from it.
type key struct {
	random   cipher.AEAD // generates a nonce itself, so that no caller can repeat one
	plain    cipher.AEAD // takes the nonce from the caller
	nonceKey []byte      // the MAC key from which SealAlike derives nonces
}

func newKey(secret []byte) (*key, error) {
	block, err := aes.NewCipher(secret)
	if err != nil {
		return nil, err
	}
	k := &key{nonceKey: derive(secret, "varve event nonce")}
	if k.random, err = cipher.NewGCMWithRandomNonce(block); err != nil {
		return nil, err
	}
	k.plain, err = cipher.NewGCM(block)
	return k, err
}

// New returns a keyring of 32-byte keys, the newest last.
func New(keys ...[]byte) (*Keyring, error) {
	if len(keys) == 0 {
		return nil, fmt.Errorf("%w: there is none", ErrKey)
	}
	r := &Keyring{keys: make(map[ID]*key, len(keys))}
	for i, secret := range keys {
		if len(secret) != KeySize {
			return nil, fmt.Errorf("%w: key %d has %d bytes, want %d", ErrKey, i+1, len(secret), KeySize)
		}
		k, err := newKey(secret)
		if err != nil {
			return nil, fmt.Errorf("key %d: %w", i+1, err)
		}
		id := identify(secret)
		r.keys[id] = k
		r.order = append(slices.DeleteFunc(r.order, func(o ID) bool { return o == id }), id)
	}
	slices.Reverse(r.order)
	return r, nil
}

// derive derives a key for another use.
func derive(secret []byte, use string) []byte {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(use))
	return mac.Sum(nil)
}

// identify hashes a key under a separate label, so that the ID differs from any
// hash that another program may use as a secret.
func identify(key []byte) (id ID) {
	sum := sha256.Sum256(append([]byte("varve key id\x00"), key...))
	copy(id[:], sum[:])
	return id
}

// Newest returns the ID of the key that seals.
func (r *Keyring) Newest() ID { return r.order[0] }

// IDs returns the IDs of the keys, the newest first.
func (r *Keyring) IDs() []ID { return slices.Clone(r.order) }

// Seal encrypts a payload for an owner, such as the entity's key.
func (r *Keyring) Seal(owner, payload []byte) []byte {
	b := r.begin(r.order[0], len(payload))
	return r.keys[r.order[0]].random.Seal(b, nil, payload, bound(b, owner))
}

// SealAlike encrypts under a key of the ring, and gives the same bytes for the
// same owner and payload, so that a store which compares a repeated payload
// with the stored one finds them equal. A reader of the store learns only which
// payloads of one owner are equal, so the owner must be unique, like the ID of
// an event.
//
// The nonce is the beginning of a MAC of owner and payload, under a separate
// key. Two different inputs have the same nonce with a probability of 2^-96, as
// with random nonces, so the same limit on the number of payloads under one key
// applies.
func (r *Keyring) SealAlike(id ID, owner, payload []byte) []byte {
	k := r.keys[id]
	mac := hmac.New(sha256.New, k.nonceKey)
	mac.Write(binary.BigEndian.AppendUint64(nil, uint64(len(owner))))
	mac.Write(owner)
	mac.Write(payload)
	b := r.begin(id, len(payload))
	additional := bound(b, owner)
	nonce := mac.Sum(nil)[:nonceSize]
	return k.plain.Seal(append(b, nonce...), nonce, payload, additional)
}

// begin returns the header of a sealed payload, with room for the rest.
func (r *Keyring) begin(id ID, payload int) []byte {
	return append(append(make([]byte, 0, Overhead+payload), magic...), id[:]...)
}

// Open decrypts the result of Seal for the same owner. It fails with
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
	k, ok := r.keys[id]
	if !ok {
		return nil, fmt.Errorf("%w: key %s", ErrUnknownKey, id)
	}
	payload, err := k.random.Open(nil, nil, rest, bound(header, owner))
	if err != nil {
		return nil, ErrTampered
	}
	return payload, nil
}

// bound is the additional data that is authenticated with the payload.
func bound(header, owner []byte) []byte {
	return append(append(make([]byte, 0, len(header)+len(owner)), header...), owner...)
}

// IsSealed reports whether a stored payload claims to be sealed.
func IsSealed(stored []byte) bool { return bytes.HasPrefix(stored, []byte(magic)) }
