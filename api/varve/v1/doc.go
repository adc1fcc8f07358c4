// Package varvev1 is the Go side of the service's gRPC interface: messages,
// clients and servers, made by protoc from the .proto files in this directory.
// The line that makes them is in package api.
package varvev1
