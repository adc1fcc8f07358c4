package result

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ReadAll reads the result sets of a campaign: the directory itself, or else each
// directory in it that is one, in the order of their names, with their peers. What
// several sets have measured in one configuration was measured with other options or on
// another machine: its records are those of the set with the most of them, of equals
// the last, and the others are left out with a warning.
func ReadAll(dir string) (*Results, error) {
	dirs, err := sets(dir)
	if err != nil {
		return nil, err
	}
	all := &Results{}
	most := make(map[string]int) // repetitions of a configuration in the set that counts
	for _, dir := range dirs {
		set, err := Read(dir)
		if err != nil {
			return nil, err
		}
		if set.Peers, err = readPeersFile(filepath.Join(dir, PeersFile)); err != nil {
			return nil, err
		}
		if len(dirs) == 1 {
			return set, nil
		}
		all.merge(set, most, filepath.Base(dir))
	}
	return all, nil
}

// sets returns the result sets of a directory.
func sets(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var list []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), RecordsFile) {
			return []string{dir}, nil
		}
		if inner, err := filepath.Glob(filepath.Join(dir, e.Name(), RecordsFile+"*")); err == nil && len(inner) > 0 {
			list = append(list, filepath.Join(dir, e.Name()))
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s is no result set and has none in it: no %s", dir, RecordsFile)
	}
	return list, nil
}

// merge adds a set. Pairs that measure the noise go with the configuration that they are
// of.
func (r *Results) merge(set *Results, most map[string]int, name string) {
	counts := make(map[string]int)
	for i := range set.Records {
		counts[set.Records[i].Once().Key()]++
	}
	lost := func(rec Record) bool { return counts[rec.Once().Key()] < most[rec.Once().Key()] }
	replaced := func(rec Record) bool {
		return counts[rec.Once().Key()] >= most[rec.Once().Key()] && counts[rec.Once().Key()] > 0
	}
	before := len(r.Records) + len(set.Records)
	r.Records = append(slices.DeleteFunc(r.Records, replaced), slices.DeleteFunc(set.Records, lost)...)
	if out := before - len(r.Records); out > 0 {
		r.warn("%d records are left out: %s and sets before it have the same configurations", out, name)
	}
	for key, n := range counts {
		most[key] = max(most[key], n)
	}
	if r.Manifests == nil {
		r.Manifests = set.Manifests
	}
	maps.Copy(r.Manifests, set.Manifests)
	r.Peers, r.Warnings = append(r.Peers, set.Peers...), append(r.Warnings, set.Warnings...)
}
