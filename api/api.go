// Package api holds the service's interface descriptions: OpenAPI for REST, and
// in varve/v1 the protobuf definitions of gRPC with the Go code generated from
// them.
package api

import _ "embed" // the description is part of the program

// OpenAPI is the OpenAPI 3.1 description of the REST interface, as YAML.
//
//go:embed openapi.yaml
var OpenAPI []byte

// The generated code is committed, so that building needs no protoc. It was
// generated with protoc 3.21.12, protoc-gen-go 1.36.12 and protoc-gen-go-grpc
// 1.6.2.
//go:generate protoc --go_out=. --go_opt=paths=source_relative --go-grpc_out=. --go-grpc_opt=paths=source_relative varve/v1/entity.proto varve/v1/event.proto
