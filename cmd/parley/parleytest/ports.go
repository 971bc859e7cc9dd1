package parleytest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// FreeAddress returns an address at which nobody listens. The system doesn't use its port for
// outgoing connections, so a server that is restarted gets it again. A lock on a file for the port
// keeps other tests, including those in other processes, from getting the same address.
func FreeAddress(t testing.TB) string {
	t.Helper()
	for range 100 {
		port := 20000 + rand.N(12000)
		lock, err := os.OpenFile(filepath.Join(os.TempDir(), fmt.Sprintf("parley-test-port-%d", port)), os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
			_ = lock.Close() // somebody else holds it
			continue
		}
		address := fmt.Sprintf("127.0.0.1:%d", port)
		l, err := net.Listen("tcp", address)
		if err != nil {
			_ = lock.Close()
			continue
		}
		_ = l.Close() // nobody has connected
		t.Cleanup(func() {
			_ = os.Remove(lock.Name())
			_ = lock.Close()
		})
		return address
	}
	t.Fatal("no port is free")
	return ""
}
