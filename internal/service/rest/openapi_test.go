package rest_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/varvedb/varve/api"
	"github.com/varvedb/varve/internal/service"
	"github.com/varvedb/varve/internal/service/rest"
)

// TestOpenAPI: the routes and the description name the same operations.
func TestOpenAPI(t *testing.T) {
	var doc map[string]any
	require.NoError(t, yaml.Unmarshal(api.OpenAPI, &doc))
	require.Equal(t, "3.1.0", doc["openapi"])
	var described []string
	for path, item := range doc["paths"].(map[string]any) {
		for method := range item.(map[string]any) {
			if method == "parameters" {
				continue
			}
			described = append(described, strings.ToUpper(method)+" "+path)
		}
	}
	require.ElementsMatch(t, described, rest.Routes())
	w := newWorld(t, service.Options{}, service.Serving{})
	require.Equal(t, string(api.OpenAPI), w.do("GET", "/openapi.yaml", "").Body.String())
	// A document with every described member is taken, and an answer has the
	// described members.
	schemas := doc["components"].(map[string]any)["schemas"].(map[string]any)
	require.Equal(t, 201, w.do("PUT", entityPath(1), `{"content_type":"a","payload":"","string_attributes":{},"numeric_attributes":{},"lifetime":1,"owner":"0x00000000000000000000000000000000000000ff"}`, asJSON).Code)
	require.Len(t, schemas["Put"].(map[string]any)["properties"], 6)
	var entity map[string]any
	require.NoError(t, json.Unmarshal(w.do("GET", entityPath(1), "").Body.Bytes(), &entity))
	for name := range schemas["Entity"].(map[string]any)["properties"].(map[string]any) {
		require.Contains(t, entity, name)
	}
	require.Len(t, schemas["Entity"].(map[string]any)["properties"], len(entity))
}
