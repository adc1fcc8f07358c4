package remote

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store"
)

// claims are what a token says.
type claims map[string]any

// sign makes a token, a JWT by EdDSA.
func (c claims) sign(t testing.TB, key ed25519.PrivateKey) string {
	t.Helper()
	body, err := json.Marshal(c)
	require.NoError(t, err)
	encode := base64.RawURLEncoding.EncodeToString
	text := encode([]byte(`{"alg":"EdDSA","typ":"JWT"}`)) + "." + encode(body)
	return text + "." + encode(ed25519.Sign(key, []byte(text)))
}

// TestToken: a server that wants a token is told by it who may write, and whom it refuses learns why.
func TestToken(t *testing.T) {
	public, key, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	_, otherKey, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	raw := server(t).newURL(t, configuration{"durability_mode": "strong", "jwt_key": base64.RawURLEncoding.EncodeToString(public)})
	soon := time.Now().Add(time.Hour).Unix()

	_, full := openStore(t, raw+"&authToken="+claims{"a": "rw", "exp": soon}.sign(t, key), "compact")
	_, err = full.Apply(t.Context(), block(1))
	require.NoError(t, err)
	for name, token := range map[string]string{
		"another key": claims{"a": "rw", "exp": soon}.sign(t, otherKey),
		"expired":     claims{"a": "rw", "exp": time.Now().Add(-time.Hour).Unix()}.sign(t, key),
		"none":        "",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := openURL(raw, with("authToken", token))
			require.ErrorContains(t, err, "it refuses the token, or wants one")
		})
	}
	t.Run("only for reading", func(t *testing.T) {
		url := raw + "&authToken=" + claims{"a": "ro", "exp": soon}.sign(t, key)
		_, es := openStore(t, url, "compact")
		_, err := es.Apply(t.Context(), block(2))
		require.ErrorContains(t, err, "it refuses the token")
		_, es = openStore(t, url+"&read_only=true", "")
		snap, err := es.At(t.Context(), store.Head)
		require.NoError(t, err)
		defer snap.Close()
		require.EqualValues(t, 1, snap.Number())
		op := block(1).Ops[0]
		e, err := snap.Get(t.Context(), op.Key)
		require.NoError(t, err)
		require.Equal(t, op.Content, e.Content)
	})
}
