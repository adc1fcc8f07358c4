package seal

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
)

// Parse parses a keyring: one key a line or between commas, as 64 hex digits or
// in base64, the newest last. Empty lines and lines that begin with # are
// ignored. Errors name an invalid key by its position and show no part of it.
func Parse(text string) (*Keyring, error) {
	var keys [][]byte
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), "#") {
			continue
		}
		for word := range strings.SplitSeq(line, ",") {
			if word = strings.TrimSpace(word); word == "" {
				continue
			}
			key, ok := decode(word)
			if !ok {
				return nil, fmt.Errorf("%w: key %d: want %d bytes as %d hex digits or in base64", ErrKey, len(keys)+1, KeySize, 2*KeySize)
			}
			keys = append(keys, key)
		}
	}
	return New(keys...)
}

func decode(word string) ([]byte, bool) {
	if key, err := hex.DecodeString(word); err == nil && len(key) == KeySize {
		return key, true
	}
	for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
		if key, err := encoding.DecodeString(word); err == nil && len(key) == KeySize {
			return key, true
		}
	}
	return nil, false
}
