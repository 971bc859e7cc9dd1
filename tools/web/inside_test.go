package web

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"parley/tools"
	"parley/tools/target"
)

// dnsServer serves DNS on this machine: each answer is the next of the addresses, and the last one is repeated forever.
func dnsServer(t *testing.T, addresses ...string) *net.Resolver {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	go func() {
		for buf := make([]byte, 1500); ; {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buf[:n]) != nil {
				continue
			}
			m.Response, m.Additionals = true, nil
			if q := m.Questions[0]; q.Type == dnsmessage.TypeA {
				m.Answers = []dnsmessage.Resource{{
					Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class},
					Body:   &dnsmessage.AResource{A: netip.MustParseAddr(addresses[0]).As4()},
				}}
				addresses = addresses[min(1, len(addresses)-1):]
			}
			if out, err := m.Pack(); err == nil {
				_, _ = conn.WriteTo(out, from)
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

// fetcherOver returns a fetcher that looks names up with the given resolver.
func fetcherOver(resolver *net.Resolver, refuse func(netip.Addr) string) *fetcher {
	dialer := newDialer(refuse)
	dialer.Resolver = resolver
	return &fetcher{settings: func() Settings { return Settings{} }, client: client{transport: newTransport(dialer)}, conversionSlots: make(chan struct{}, 1)}
}

func countingServer(t *testing.T) (port string, hits *atomic.Int32) {
	t.Helper()
	hits = &atomic.Int32{}
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	t.Cleanup(s.Close)
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	return u.Port(), hits
}

// A name that resolves to a public address when it is checked, and to this machine when it is connected to, is refused.
func TestRebinding(t *testing.T) {
	port, hits := countingServer(t)
	resolver := dnsServer(t, "1.1.1.1", "127.0.0.1")
	first, err := resolver.LookupNetIP(t.Context(), "ip4", "rebind.example")
	if err != nil || Refuse(first[0]) != "" {
		t.Fatalf("the first look gives %v, %v; want a public address", first, err)
	}
	_, err = fetcherOver(resolver, Refuse).fetch(t.Context(), tools.Call{}, fetchArgs{URL: "http://rebind.example:" + port})
	if failed, ok := errors.AsType[*tools.Error](err); !ok || failed.Code != tools.PermissionDenied || !strings.Contains(failed.Message, "127.0.0.1") {
		t.Errorf("it gave %v, want a refusal that names the address", err)
	}
	if hits.Load() != 0 {
		t.Error("the name led to this machine")
	}
}

// The proxy in the environment is not used. TestMain sets one that doesn't exist.
func TestProxyIsIgnored(t *testing.T) {
	port, hits := countingServer(t)
	f := fetcherOver(dnsServer(t, "127.0.0.1"), func(netip.Addr) string { return "" })
	if _, err := f.fetch(t.Context(), tools.Call{}, fetchArgs{URL: "http://page.example:" + port}); err != nil || hits.Load() != 1 {
		t.Errorf("%d requests, %v; want one", hits.Load(), err)
	}
}

// FuzzTarget checks that no URL, and no redirect from one to another, leads to a request that must never be made.
func FuzzTarget(f *testing.F) {
	for _, seed := range [][2]string{
		{"https://example.com/a?b#c", "/x"}, {"http://127.1", "//[::1]"}, {"http://①②⑦.⓪.⓪.①:80/", "http://0x7f.1"}, {"http://user:pw@a", "file:///etc/passwd"},
		{"http://[::ffff:7f00:1]/", "http://a\r\nb"}, {"http://[fe80::1%25lo]:1", "\\\\evil"}, {"http://%31%32%37.0.0.1", "?q=%0d%0a"}, {"http://EXAMPLE.com.:80", "http://a.b_c-.d/"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, raw, location string) {
		u, err := parseTarget(raw)
		if err != nil {
			return
		}
		wellFormed(t, u)
		if next, err := u.Parse(location); err == nil && checkTarget(next) == nil {
			wellFormed(t, next)
		}
	})
}

func wellFormed(t *testing.T, u *url.URL) {
	t.Helper()
	host := u.Hostname()
	if u.Scheme != "http" && u.Scheme != "https" || u.User != nil || host == "" || strings.ContainsAny(u.Host, "@/\\?# \r\n\x00%") || host != strings.ToLower(host) {
		t.Fatalf("accepted %q with the host %q", u, u.Host)
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		if addr.String() != host || addr.Zone() != "" {
			t.Fatalf("the address %q is not written as it is", host)
		}
	} else if last := host[strings.LastIndexByte(host, '.')+1:]; last[0] >= '0' && last[0] <= '9' && strings.Trim(last, "0123456789") == "" {
		t.Fatalf("the host %q is a number to some", host)
	}
	again, err := parseTarget(u.String())
	if err != nil || again.Host != u.Host {
		if len(u.String()) > target.MaxURL {
			return // percent-encoding has made the URL longer
		}
		t.Fatalf("%q is accepted, and again it gives %v, %v", u, again, err)
	}
	request, err := http.NewRequest(http.MethodGet, u.String(), nil)
	if err != nil || request.URL.Host != u.Host || request.Host != u.Host {
		t.Fatalf("%q becomes a request for %q, %v", u, request.Host, err)
	}
}
