package main

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"

	"github.com/varvedb/varve/node/chain"
)

// Rules of Arkiv that Varve does not have. They are checked, so that a program
// that works here also works on Arkiv.
var (
	// processorName matches attribute names in the processor's form,
	// contractName in the contract's.
	processorName = regexp.MustCompile(`^[\p{L}_][\p{L}\p{N}_]*$`)
	contractName  = regexp.MustCompile(`^[a-z][a-z0-9._-]{0,31}$`)

	// contractType matches a content type in the contract's form, of at most
	// 128 bytes.
	contractType = regexp.MustCompile(`^` + token + `/` + token + `(; *` + token + `=` + token + `)*$`)
)

const (
	token         = "[a-z0-9!#$%&'*+.^_`{|}~-]+"
	maxType       = 128  // bytes of a content type
	maxOperations = 1000 // of a transaction to the processor
	maxAttributes = 32   // of an entity, in the contract's form
)

// checkOperations checks a transaction to the processor.
func checkOperations(ops *chain.Operations) error {
	n := len(ops.Creates) + len(ops.Updates) + len(ops.Deletes) + len(ops.Extensions) + len(ops.OwnerChanges)
	switch {
	case n == 0:
		return errors.New("no operations")
	case n > maxOperations:
		return fmt.Errorf("%d operations, at most %d are allowed", n, maxOperations)
	}
	for i := range ops.Creates {
		if err := checkContent(&ops.Creates[i]); err != nil {
			return fmt.Errorf("create %d: %w", i, err)
		}
	}
	for i := range ops.Updates {
		if err := checkContent(&ops.Updates[i].Create); err != nil {
			return fmt.Errorf("update %d: %w", i, err)
		}
	}
	return nil
}

func checkContent(c *chain.Create) error {
	if c.ContentType == "" || len(c.ContentType) > maxType {
		return fmt.Errorf("a content type of %d bytes, want 1 to %d", len(c.ContentType), maxType)
	}
	for _, name := range slices.AppendSeq(slices.Collect(maps.Keys(c.Strings)), maps.Keys(c.Numbers)) {
		if err := checkName(name, processorName); err != nil {
			return err
		}
	}
	return nil
}

func checkName(name string, form *regexp.Regexp) error {
	if !form.MatchString(name) {
		return fmt.Errorf("the name of an attribute %q does not match %s", name, form)
	}
	return nil
}

// check checks the content of an entity in a call to the contract.
func (o *contractOp) check() error {
	if kind := text(joined(o.ContentType.Data)); !contractType.MatchString(kind) {
		return fmt.Errorf("the content type %q does not match %s", kind, contractType)
	}
	if n := len(o.Attributes); n > maxAttributes {
		return fmt.Errorf("%d attributes, at most %d are allowed", n, maxAttributes)
	}
	last := ""
	for _, a := range o.Attributes {
		name := text(a.Name[:])
		if err := checkName(name, contractName); err != nil {
			return err
		}
		if name <= last {
			return fmt.Errorf("attribute %q after %q: they go in the order of their names, each once", name, last)
		}
		last = name
	}
	return nil
}
