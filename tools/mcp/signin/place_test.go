package signin_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/tools/mcp/signin"
)

// A name that resolves to this machine, or to a private network, is refused: the address that is connected to decides.
func TestAServerThatNamesThisMachineByAName(t *testing.T) {
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
		t.Setenv(name, "")
	}
	var reached atomic.Int32
	here, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = here.Close() }() // nobody uses it anymore
	go func() {
		for {
			c, err := here.Accept()
			if err != nil {
				return
			}
			reached.Add(1)
			_ = c.Close() // the connection itself is enough
		}
	}()
	_, port, err := net.SplitHostPort(here.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	r := newSignInRig(t)
	evil := signin.Server{Name: "evil", URL: "https://mcp.example/mcp"}
	for _, c := range []struct {
		leadsTo [4]byte
		want    string
	}{{[4]byte{127, 0, 0, 1}, "of this machine"}, {[4]byte{169, 254, 169, 254}, "of this machine"}, {[4]byte{10, 0, 0, 1}, "of a private network"}} {
		resolveAll(t, "auth.example", c.leadsTo)
		d := signin.New(r.cfg)
		said := `Bearer resource_metadata="https://auth.example:` + port + `/.well-known/oauth-protected-resource/mcp"`
		if err := d.RecordWanted(t.Context(), evil, []string{said}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		begun, err := d.Begin(ctx, evil, "")
		cancel()
		if err == nil || !strings.Contains(err.Error(), c.want) || reached.Load() != 0 {
			t.Errorf("a name of %v: it was reached %d times, and gave %q, %v", c.leadsTo, reached.Load(), begun.URL, err)
		}
	}
}

// resolveAll makes one name resolve to an address, and all others to nothing, until the test ends.
func resolveAll(t *testing.T, name string, to [4]byte) {
	t.Helper()
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	before := net.DefaultResolver
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", server.LocalAddr().String())
	}}
	ended := make(chan struct{})
	t.Cleanup(func() {
		net.DefaultResolver = before
		_ = server.Close() // no more questions come
		<-ended
	})
	go func() {
		defer close(ended)
		for packet := make([]byte, 1500); ; {
			n, from, err := server.ReadFrom(packet)
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err == nil {
				_, _ = server.WriteTo(dnsAnswer(packet[:n], name, to), from) // a client that gets no answer asks again
			}
		}
	}()
}

// dnsAnswer returns the answer to a DNS question.
func dnsAnswer(question []byte, name string, to [4]byte) []byte {
	const header = 12
	end := header
	var labels []string
	for question[end] != 0 {
		size := int(question[end])
		labels = append(labels, string(question[end+1:end+1+size]))
		end += 1 + size
	}
	end++ // the root
	kind := question[end+1]
	answer := append([]byte{question[0], question[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, question[header:end+4]...)
	if strings.Join(labels, ".") != name || kind != 1 {
		return answer // there is no such record
	}
	answer[7] = 1
	return append(answer, append([]byte{0xc0, header, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4}, to[:]...)...)
}
