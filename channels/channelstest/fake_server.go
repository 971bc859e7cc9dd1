package channelstest

import (
	"net/url"
	"testing"
)

// A FakeServer is a fake platform's HTTP server. A test can stop it and start it again at the same address; it
// implements a FakePlatform's Up and Down.
type FakeServer struct {
	URL string // the URL at which the channel reaches it

	t      testing.TB
	server server
}

type server interface {
	Start(addr string) (url string, err error)
	Close() error
}

// StartServer starts a server that runs until the test ends.
func StartServer(t testing.TB, s server) *FakeServer {
	f := &FakeServer{t: t, server: s}
	f.start("127.0.0.1:0")
	t.Cleanup(func() { _ = s.Close() }) // it may already be closed
	return f
}

func (f *FakeServer) start(addr string) {
	f.t.Helper()
	reached, err := f.server.Start(addr)
	if err != nil {
		f.t.Fatal(err)
	}
	f.URL = reached
}

// Up starts the server again.
func (f *FakeServer) Up() {
	f.t.Helper()
	at, err := url.Parse(f.URL)
	if err != nil {
		f.t.Fatal(err)
	}
	f.start(at.Host)
}

// Down stops the server.
func (f *FakeServer) Down() {
	f.t.Helper()
	if err := f.server.Close(); err != nil {
		f.t.Fatal(err)
	}
}
