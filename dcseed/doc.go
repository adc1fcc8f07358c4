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
// After the initial state each block updates 60 nodes and 600 workloads. Turns go round all
// entities in a fixed pseudo-random order, so that the last turn of an entity at or before a block
// is a closed formula. A turn replaces the status by a fresh draw from the same distribution, the
// payload and the lifetime. The draw may give the old status again (a heartbeat): 80 % of the
// workloads run at any time, which no process that changes the status at each turn could keep up.
//
// # Lifetimes
//
// Entities expire, and answers count only what is visible at the block they are for. No lifetime is
// below ShortestLife blocks, so "exactly all" and "exactly five" hold that long after the first
// block, and later for entities whose turns come round in time. An entity that has expired when its
// turn comes is created anew under the same key.
package dcseed
