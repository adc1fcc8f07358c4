package seal_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/service/seal"
)

func key(b byte) []byte { return bytes.Repeat([]byte{b}, seal.KeySize) }

func ring(t testing.TB, keys ...[]byte) *seal.Keyring {
	t.Helper()
	r, err := seal.New(keys...)
	require.NoError(t, err)
	return r
}

func TestSealAndOpen(t *testing.T) {
	r := ring(t, key(1))
	for _, payload := range [][]byte{nil, []byte("x"), bytes.Repeat([]byte("long"), 1<<16)} {
		sealed := r.Seal([]byte("owner"), payload)
		require.Len(t, sealed, len(payload)+seal.Overhead)
		require.True(t, seal.IsSealed(sealed))
		opened, err := r.Open([]byte("owner"), sealed)
		require.NoError(t, err)
		require.True(t, bytes.Equal(payload, opened))
		require.NotEqual(t, sealed, r.Seal([]byte("owner"), payload), "the nonce is drawn anew")
		if len(payload) > 16 {
			require.NotContains(t, string(sealed), string(payload[:16]))
		}
	}
}

func TestRotation(t *testing.T) {
	before, both, after := ring(t, key(1)), ring(t, key(1), key(2)), ring(t, key(2))
	old := before.Seal([]byte("o"), []byte("p"))
	opened, err := both.Open([]byte("o"), old)
	require.NoError(t, err)
	require.Equal(t, "p", string(opened))
	fresh := both.Seal([]byte("o"), []byte("p"))
	require.Equal(t, after.Newest(), both.Newest())
	opened, err = after.Open([]byte("o"), fresh)
	require.NoError(t, err)
	require.Equal(t, "p", string(opened))
	opened, err = after.Open([]byte("o"), old)
	require.ErrorIs(t, err, seal.ErrUnknownKey)
	require.ErrorContains(t, err, before.Newest().String())
	require.Nil(t, opened)
}

// Every bit counts: the head, the nonce, the ciphertext, the tag and the owner.
func TestTampered(t *testing.T) {
	r := ring(t, key(1), key(2))
	sealed := r.Seal([]byte("owner"), []byte("payload"))
	for i := range len(sealed) * 8 {
		changed := bytes.Clone(sealed)
		changed[i/8] ^= 1 << (i % 8)
		opened, err := r.Open([]byte("owner"), changed)
		require.Error(t, err, "bit %d", i)
		require.Nil(t, opened)
	}
	for n := range sealed {
		opened, err := r.Open([]byte("owner"), sealed[:n])
		require.Error(t, err, "cut to %d bytes", n)
		require.Nil(t, opened)
	}
	_, err := r.Open([]byte("other"), sealed)
	require.ErrorIs(t, err, seal.ErrTampered, "moved to another entity")
	_, err = r.Open([]byte("owner"), []byte("payload"))
	require.ErrorIs(t, err, seal.ErrNotSealed)
}

func TestParse(t *testing.T) {
	one, two := key(1), bytes.Repeat([]byte{0xfb, 0xff}, 16)
	text := "# old\n" + hex.EncodeToString(one) + "\r\n\n  " + base64.StdEncoding.EncodeToString(two) + "\n"
	for _, text := range []string{
		text, hex.EncodeToString(one) + "," + base64.RawURLEncoding.EncodeToString(two),
	} {
		r, err := seal.Parse(text)
		require.NoError(t, err)
		require.Len(t, r.IDs(), 2)
		require.Equal(t, ring(t, two).Newest(), r.Newest())
	}
	for _, text := range []string{"", "# nothing\n", "secret", hex.EncodeToString(one[1:]), hex.EncodeToString(one) + "\nsecret"} {
		_, err := seal.Parse(text)
		require.ErrorIs(t, err, seal.ErrKey, "%q", text)
		require.NotContains(t, err.Error(), "secret")
	}
}

// golden is a payload that was sealed once. Stores hold such, so that it must open for ever.
const golden = "7661727665736c01432a3a9b2a6e3ca8f4371f5e627c47cc59a89102ff7a1d0c" +
	"64065f0a91977c9e866b1c0ce7dc09fa29b06c"

func TestGolden(t *testing.T) {
	sealed, err := hex.DecodeString(golden)
	require.NoError(t, err)
	opened, err := ring(t, key(1)).Open([]byte("owner"), sealed)
	require.NoError(t, err)
	require.Equal(t, "payload", string(opened))
}

// TestSealAlike: the same gives the same bytes, and whatever differs another nonce.
func TestSealAlike(t *testing.T) {
	r := ring(t, key(1), key(2))
	require.Equal(t, []seal.ID{ring(t, key(2)).Newest(), ring(t, key(1)).Newest()}, r.IDs())
	nonces := map[string]bool{}
	for _, id := range r.IDs() {
		for _, owner := range []string{"", "o", "owner", "other"} {
			for _, payload := range []string{"", "p", "o", "owner", "nero"} {
				sealed := r.SealAlike(id, []byte(owner), []byte(payload))
				require.Equal(t, sealed, r.SealAlike(id, []byte(owner), []byte(payload)))
				require.Len(t, sealed, len(payload)+seal.Overhead)
				nonces[string(sealed[16:28])] = true
				opened, err := r.Open([]byte(owner), sealed)
				require.NoError(t, err)
				require.Equal(t, payload, string(opened))
				_, err = r.Open([]byte(owner+"x"), sealed)
				require.ErrorIs(t, err, seal.ErrTampered)
			}
		}
	}
	require.Len(t, nonces, 2*4*5)
	_, err := ring(t, key(1)).Open([]byte("o"), r.SealAlike(r.Newest(), []byte("o"), nil))
	require.ErrorIs(t, err, seal.ErrUnknownKey)
}

// FuzzOpen: only sealed bytes are opened.
func FuzzOpen(f *testing.F) {
	r := ring(f, key(1))
	sealed, err := hex.DecodeString(golden) // the same in every process of the fuzzer
	require.NoError(f, err)
	f.Add(sealed)
	f.Add(sealed[:seal.Overhead])
	f.Add([]byte("varvesl\x01"))
	f.Fuzz(func(t *testing.T, data []byte) {
		opened, err := r.Open([]byte("owner"), data)
		if bytes.Equal(data, sealed) {
			require.NoError(t, err)
			return
		}
		require.Error(t, err)
		require.Nil(t, opened)
	})
}

// FuzzParse: a list of keys has one at least, or is refused as no keys.
func FuzzParse(f *testing.F) {
	f.Add(hex.EncodeToString(key(1)))
	f.Add(hex.EncodeToString(key(1)) + "\n" + hex.EncodeToString(key(1)))
	f.Add("#\n,,\n")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := seal.Parse(text)
		if err == nil {
			require.NotEmpty(t, r.IDs())
			return
		}
		require.ErrorIs(t, err, seal.ErrKey)
	})
}
