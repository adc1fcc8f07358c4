// Package rpc answers Arkiv's JSON-RPC over a store of entities, so that the
// network's own SDKs read from it as from a node: JSON-RPC 2.0 over HTTP and
// WebSocket, one call or a batch. Another part of this process, or another
// process, writes the store.
//
// arkiv_query takes a text in the language of package query, as the SDKs send
// it: an empty one and "1 = 1" match all, and text between quotes need not be
// escaped. All pages are of the block of the first one, even while the head
// moves, because the cursor has it. When that block was rewound the next page
// is CodeRewound. A page has as many entities as were asked for, up to a limit
// above which it has a cursor. A long page is sent in parts over HTTP. A query
// for a block ahead of the head waits, and so do logs.
//
// # Events
//
// The events of eth_getLogs, filters and subscriptions are made of what blocks changed
// ([store.Snapshot.Changes]). That is less than a chain keeps:
//
//   - What a block did and undid again does not show, and two updates of it are one.
//   - An entity that was ended before its time was deleted, whatever ended it.
//   - Entities that run out do so at their expiration, whether or not the chain says so.
//   - A change of the owner to the same owner is an update.
//   - Hashes of transactions are zero, and their indexes but of creations. Costs are zero.
//   - Logs are in the order: what ran out, what was created, the rest by key.
//   - A block's hash is that of the chain if the store was told, else one that differs
//     where histories differ.
//
// Each event comes in two forms: one of the six events of the processor at
// 0x…61726b6976, and the one event EntityOperation of the contract 0x44…44 that newer SDKs
// ask for, with a hash of zero. Clients name the address or the topics that they want. A
// program that has the logs of its chain gives them instead, by Options.Logs.
//
// A filter is told what comes after it was installed. When the store was rewound, filters
// and subscriptions are told the logs of the last blocks as removed.
package rpc
