package lint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Dependency is a module that go.mod requires directly.
type Dependency struct {
	Path string
	Dir  string // of its source
}

// Dependencies lists what the go.mod in a directory requires directly.
func Dependencies(ctx context.Context, dir string) ([]Dependency, error) {
	type module struct {
		Dependency
		Main, Indirect bool
	}
	all, err := goList[module](ctx, dir, "-m", "-json=Path,Dir,Main,Indirect", "all")
	var list []Dependency
	for _, m := range all {
		if !m.Main && !m.Indirect {
			list = append(list, m.Dependency)
		}
	}
	return list, err
}

// dependencyRow is a row of the table: module, reason, licence, size in MB.
var dependencyRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| ([^|]*) \\| ([^|]*) \\| ([0-9.]+) \\|$")

// CheckDependencies compares a document with what go.mod requires: a row for each
// module and no other, a reason, the licence of its source, and its size, which
// may be off by a factor of two.
func CheckDependencies(name string, document []byte, list []Dependency) ([]Problem, error) {
	var problems []Problem
	problem := func(format string, args ...any) {
		problems = append(problems, Problem{Path: name, Message: fmt.Sprintf(format, args...)})
	}
	rows := map[string][]string{}
	for _, m := range dependencyRow.FindAllStringSubmatch(string(document), -1) {
		if rows[m[1]] != nil {
			problem("two rows of %s", m[1])
		}
		rows[m[1]] = m[2:]
	}
	for _, d := range list {
		row := rows[d.Path]
		delete(rows, d.Path)
		if row == nil {
			problem("no row of %s: add its reason, licence and size", d.Path)
			continue
		}
		licence, megabytes, err := inspect(d.Dir)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", d.Path, err)
		}
		if strings.TrimSpace(row[0]) == "" {
			problem("%s has no reason", d.Path)
		}
		if row[1] != licence {
			problem("%s: licence %q, its source has %q", d.Path, row[1], licence)
		}
		stated, err := strconv.ParseFloat(row[2], 64)
		if err != nil || stated > 2*megabytes || stated < megabytes/2 {
			problem("%s: size %s, its source has %.2g MB", d.Path, row[2], megabytes)
		}
	}
	for path := range rows {
		problem("%s is not a direct requirement of go.mod: remove its row", path)
	}
	return sorted(problems), nil
}

// inspect returns the licence of a module and the megabytes of its files.
func inspect(dir string) (licence string, megabytes float64, err error) {
	if dir == "" {
		return "", 0, errors.New("its source is not there: run go mod download")
	}
	size := int64(0)
	err = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	})
	if err != nil {
		return "", 0, err
	}
	licence, err = readLicence(dir)
	return licence, float64(size) / 1e6, err
}

// licences are known by a phrase of their text.
var licences = []struct{ name, phrase string }{
	{"Apache-2.0", "Apache License"},
	{"BSD-3-Clause", "Redistribution and use in source and binary forms"},
	{"ISC", "Permission to use, copy, modify, and distribute this software for any purpose"},
	{"MIT", "Permission is hereby granted, free of charge"},
	{"MPL-2.0", "Mozilla Public License Version 2.0"},
	{"Unlicense", "free and unencumbered software released into the public domain"},
	{"public domain", "put into the public domain"},
}

var licenceFile = regexp.MustCompile(`(?i)^(un)?licen[sc]e|^copying`)

// readLicence returns the licences that the licence files of a module have, in
// the order of the alphabet.
func readLicence(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	var found []string
	for _, entry := range entries {
		if entry.IsDir() || !licenceFile.MatchString(entry.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return "", err
		}
		words := strings.Join(strings.Fields(string(text)), " ")
		for _, l := range licences {
			if strings.Contains(words, l.phrase) && !slices.Contains(found, l.name) {
				found = append(found, l.name)
			}
		}
	}
	if len(found) == 0 {
		return "unknown", nil
	}
	slices.Sort(found)
	return strings.Join(found, ", "), nil
}
