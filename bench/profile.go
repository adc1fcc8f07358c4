package bench

import (
	"fmt"
	"strconv"
	"strings"
)

// Profile is the shape of generated entities.
type Profile struct {
	Name    string `json:"name"`    // as in the names of benchmarks
	Strings int    `json:"strings"` // string attributes of an entity
	Numbers int    `json:"numbers"` // numeric attributes of an entity
	Payload int    `json:"payload"` // bytes
}

// The profiles of the seed's Experiment 5.
var (
	Minimal = Profile{Name: "minimal", Strings: 2, Numbers: 1, Payload: 1 << 10}
	Typical = Profile{Name: "typical", Strings: 5, Numbers: 3, Payload: 5 << 10}
	Large   = Profile{Name: "large", Strings: 10, Numbers: 5, Payload: 50 << 10}
)

// profiles are all that have a name.
var profiles = []Profile{Minimal, Typical, Large}

// WithPayload returns the profile with payloads of n bytes; its name says so:
// Typical.WithPayload(256) is "typical-256B". Keys and attributes stay those of
// the profile.
func (p Profile) WithPayload(n int) Profile {
	base, _, _ := strings.Cut(p.Name, "-")
	p.Name = base + "-" + strconv.Itoa(n) + "B"
	p.Payload = n
	return p
}

// ParseProfile returns the profile with a name, such as "large" or
// "typical-256B".
func ParseProfile(name string) (Profile, error) {
	base, payload, sized := strings.Cut(name, "-")
	for _, p := range profiles {
		if p.Name != base {
			continue
		}
		if !sized {
			return p, nil
		}
		n, err := strconv.Atoi(strings.TrimSuffix(payload, "B"))
		if err == nil && n >= 0 && strings.HasSuffix(payload, "B") {
			return p.WithPayload(n), nil
		}
	}
	return Profile{}, fmt.Errorf("unknown profile %q; want minimal, typical or large, or one with its payload such as typical-256B", name)
}

// The rows that one version of an entity has beside its own attributes'. A
// layout that lies otherwise is measured by the same count, so that rows/s
// compares layouts by the work they are asked for.
const (
	syntheticStrings = 3 // $key, $owner, $creator
	syntheticNumbers = 5 // $createdAtBlock, $expiration, $sequence, $txIndex, $opIndex
)

// Rows returns the rows of one version: its attributes, the synthetic ones
// included, and its payload.
func (p Profile) Rows() int {
	return p.Strings + syntheticStrings + p.Numbers + syntheticNumbers + 1
}
