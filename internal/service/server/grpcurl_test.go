package server_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/internal/service"
	"github.com/varvedb/varve/internal/service/server"
)

// TestGrpcurl: grpcurl finds by reflection what there is over gRPC, and what docs/service.md
// says that it can be asked is answered.
func TestGrpcurl(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program")
	}
	t.Parallel()
	tool := filepath.Join(t.TempDir(), "grpcurl")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", tool, "github.com/fullstorydev/grpcurl/cmd/grpcurl")
	build.Dir = "../../tools"
	if out, err := build.CombinedOutput(); err != nil {
		t.Skipf("grpcurl cannot be had here: %v: %s", err, out)
	}
	const token = "a token for the tests"
	w := run(t, service.Options{}, server.Options{Token: token})
	sh := func(command string) string {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		command = strings.ReplaceAll(strings.Replace(command, "grpcurl", "$GRPCURL -H 'authorization: Bearer "+token+"'", 1), "localhost:8081", w.server.GRPC())
		c := exec.CommandContext(ctx, "sh", "-c", command)
		c.Env = append(os.Environ(), "GRPCURL="+tool)
		out, err := c.CombinedOutput()
		require.NoError(t, err, "%s\n%s", command, out)
		return string(out)
	}
	require.Equal(t, "grpc.health.v1.Health\ngrpc.reflection.v1.ServerReflection\ngrpc.reflection.v1alpha.ServerReflection\nvarve.v1.EntityService\nvarve.v1.EventService\n",
		sh("grpcurl -plaintext localhost:8081 list"))
	require.Contains(t, sh("grpcurl -plaintext localhost:8081 describe varve.v1.EntityService"), "rpc Put ( .varve.v1.PutRequest ) returns ( .varve.v1.PutResponse );")
	require.Contains(t, sh("grpcurl -plaintext localhost:8081 describe varve.v1.AppendRequest"), "repeated .varve.v1.Event events")
	require.Contains(t, sh("grpcurl -plaintext localhost:8081 grpc.health.v1.Health/Check"), "SERVING")
	sh(`grpcurl -plaintext -d '{"events": [{"type": "Registered"}]}' localhost:8081 varve.v1.EventService/Append`)

	text, err := os.ReadFile("../../../docs/service.md")
	require.NoError(t, err)
	answers := map[string]string{"Put": `"created": true`, "Query": `"count": "1"`, "Read": `"Registered"`}
	for _, m := range regexp.MustCompile(`(?m)^grpcurl (?:.*\\\n)*.*varve\.v1\.\w+/(\w+)$`).FindAllStringSubmatch(string(text), -1) {
		command, method := m[0], m[1]
		if method == "Subscribe" {
			continue // it does not end
		}
		require.Contains(t, sh(command), answers[method], command)
		delete(answers, method)
	}
	require.Empty(t, answers, "documented")
}
