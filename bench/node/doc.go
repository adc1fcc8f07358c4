// Package node measures an Arkiv node as its clients see it: what the network's SDKs ask,
// over JSON-RPC on loopback, while the node follows a chain. Clients, chain and node share
// the machine. Every answer is checked: it is of one block that there was when it was
// given, and what it says is right at that block.
package node
