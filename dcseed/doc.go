// Package dcseed is the data-centre model: data centres full of nodes and workloads, the load that
// updates them block after block, and queries whose answers are known without a database. It
// streams blocks, stores nothing and does no I/O.
//
// Everything is a pure function of a Config: the attributes of node n of data centre d, the
// operations of block b, the state of an entity at any block, the answer to a query at any block.
// The same Config gives the same bytes on every machine; only integer arithmetic takes part.
//
// A data centre has 100,000 nodes and 500,000 workloads, numbered from 1.
// Workload w is assigned to node (w-1) mod nodes + 1 of its data centre, whatever
// its status, so that each node has exactly five.
//
// # Load
//
// After the initial state each block updates 60 nodes and 600 workloads. The
// updates go round all entities in a fixed pseudo-random order, so that the
// last update of an entity at or before a block is a closed formula. Each
// update makes a revision of the entity. It replaces the status by a new draw
// from the same distribution, the payload and the lifetime. The draw may give
// the old status again (a heartbeat): 80 % of the workloads run at any time,
// and no process that changes the status with each revision could keep that up.
//
// # Lifetimes
//
// Entities expire, and answers count only the entities that are visible at
// their block. No lifetime is below ShortestLife blocks, so "exactly all" and
// "exactly five" hold that long after the first block, and later for entities
// that are updated in time. An entity that has expired when its update comes is
// created again under the same key.
package dcseed
