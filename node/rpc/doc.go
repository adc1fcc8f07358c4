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
// The events of eth_getLogs, filters and subscriptions are made from the changes of
// a block ([store.Snapshot.Changes]), which are less than a chain keeps:
//
//   - A change that the same block takes back does not show, and two updates of an
//     entity in a block are one.
//   - An entity that ended before its expiration is shown as deleted.
//   - An entity that runs out is shown as expired in the block of its expiration,
//     whether or not the chain has such an event.
//   - A change of the owner to the same owner is an update.
//   - Hashes of transactions are zero, and so are their indexes except for
//     creations. Costs are zero.
//   - The logs of a block are in this order: expirations, creations, the rest by key.
//   - A block's hash is the chain's if the store was given it. Otherwise it is a hash
//     that differs where histories differ.
//
// Each event comes in two forms: one of the six events of the processor at
// 0x…61726b6976, and the one event EntityOperation of the contract 0x44…44 that
// newer SDKs ask for, with a hash of zero. Clients select a form by its address or
// topics. A program that has the logs of its chain gives them by Options.Logs.
//
// A filter sends the events after its installation. When the store was rewound,
// filters and subscriptions send the logs of the last blocks as removed.
package rpc
