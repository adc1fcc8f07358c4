// Package serve measures the entity service as its clients see it: over REST and
// gRPC on loopback, and in process, so that the share of the protocol shows.
// Client and server share the machine. Every answer is checked.
package serve
