package dcseed

import (
	"crypto/sha256"
	"fmt"

	"github.com/varvedb/varve/internal/splitmix"
	"github.com/varvedb/varve/store/entity"
)

// Class is the class of an entity.
type Class uint8

// The classes.
const (
	ClassNode Class = iota + 1
	ClassWorkload
)

// Ref identifies an entity: node or workload N of data centre DC, both numbered
// from 1.
type Ref struct {
	Class Class
	DC, N int
}

// NodeRef returns the Ref of a node.
func NodeRef(dc, n int) Ref { return Ref{ClassNode, dc, n} }

// WorkloadRef returns the Ref of a workload.
func WorkloadRef(dc, w int) Ref { return Ref{ClassWorkload, dc, w} }

// String returns the identifier, such as node_07_000042 or wl_07_000123.
func (r Ref) String() string { return string(r.appendID(make([]byte, 0, 16))) }

func (r Ref) appendID(b []byte) []byte {
	prefix := "wl"
	if r.Class == ClassNode {
		prefix = "node"
	}
	return fmt.Appendf(b, "%s_%02d_%06d", prefix, r.DC, r.N)
}

// Key returns the entity's key: the SHA-256 of its identifier.
func (r Ref) Key() entity.Key {
	var id [32]byte
	return sha256.Sum256(r.appendID(id[:0]))
}

// DCID returns the value of dc_id for a data centre, such as dc_07.
func DCID(dc int) string { return fmt.Sprintf("dc_%02d", dc) }

// Operator returns the account that owns and created the nodes of a data centre.
func Operator(dc int) entity.Address {
	return address(fmt.Sprintf("operator_%02d", dc))
}

// Tenants is the number of accounts that own workloads. Their activity is
// skewed: the first one owns 3 % of the workloads, the last one 0.05 %.
const Tenants = 1_000

// Tenant returns the account of tenant t, from 1 to Tenants. It owns and created
// its workloads in every data centre.
func Tenant(t int) entity.Address {
	return address(fmt.Sprintf("tenant_%04d", t))
}

// address is the first 20 bytes of the SHA-256 of a name.
func address(name string) (a entity.Address) {
	sum := sha256.Sum256([]byte(name))
	copy(a[:], sum[:])
	return a
}

// tenant draws a tenant by squaring a uniform number: tenant t has the share
// √(t/T) - √((t-1)/T).
func (s source) tenant() int {
	u := s.draw(fieldTenant, 0)
	return int(splitmix.Below(splitmix.Below(u, u), Tenants)) + 1
}
