package parleytest

import (
	"os"
	"testing"

	"parley/bus/redisbus/redistest"
)

// StartRedis starts a Redis that ends with the test.
func StartRedis(t testing.TB) *redistest.Server {
	t.Helper()
	if os.Getenv(redistest.ProgramEnv) == "" {
		t.Skip("there is no " + redistest.ProgramEnv + ": run it as `.ci/servers go test …`, or with make test")
	}
	return redistest.New(t)
}
