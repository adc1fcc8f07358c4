// Package dcseed is a model of data centres: data centres full of nodes and
// workloads, the load that updates them block after block, and queries whose
// answers are known without a database. It streams blocks, stores nothing and
// does no I/O.
//
// Everything is a pure function of a Config: the attributes of node n of data
// centre d, the operations of block b, the state of an entity at any block, the
// answer to a query at any block. The same Config gives the same bytes on every
// machine, because only integer arithmetic is used.
//
// A data centre has 100,000 nodes and 500,000 workloads, numbered from 1.
// Workload w is assigned to node (w-1) mod nodes + 1 of its data centre,
// whatever its status, so that each node has exactly five.
//
// # Load
//
// After the initial state each block updates 60 nodes and 600 workloads. The
// updates cycle through all entities in a fixed pseudo-random order, so that a
// closed formula gives the last update of an entity at or before a block. Each
// update makes a revision of the entity. It draws a new status from the same
// distribution, and replaces the payload and the lifetime. The new status may
// equal the old one (a heartbeat): 80 % of the workloads run at any time, so
// the status cannot change with every revision.
//
// # Lifetimes
//
// Entities expire, and answers count only the entities that are visible at
// their block. No lifetime is below ShortestLife blocks. So "exactly all" and
// "exactly five" hold at least that long after the first block, and longer for
// entities that are updated in time. An entity that has expired before its
// update is created again under the same key.
package dcseed
