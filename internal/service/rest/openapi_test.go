package rest_test

import (
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
}
