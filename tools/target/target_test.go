package target_test

import (
	"net"
	"net/netip"
	"testing"

	"parley/tools/target"
)

func TestParse(t *testing.T) {
	for raw, want := range map[string]string{
		"https://evil\u3002com/x": "https://evil.com/x", "https://\uff45vil.com/x": "https://evil.com/x", "https://ev\u00adil.com/x": "https://evil.com/x",
		"HTTP://EVIL.com.:0080/x": "http://evil.com:80/x", "https://[2001:DB8:0::1]/": "https://[2001:db8::1]/",
	} {
		if u, err := target.Parse(raw); err != nil || u.String() != want {
			t.Errorf("%q is %v, %v; want %s", raw, u, err, want)
		}
	}
	for _, raw := range []string{"", "evil.com", "ftp://evil.com", "https://u@evil.com", "https://evil.com:0", "https://evil.com:65536", "https://0x7f.1/", "https://a b/"} {
		if u, err := target.Parse(raw); err == nil {
			t.Errorf("%q is taken for %s", raw, u)
		}
	}
}

func TestIsOurs(t *testing.T) {
	ours := []string{
		"127.0.0.1", "127.9.9.9", "::1", "0.0.0.0", "0.0.0.1", "::", "::ffff:127.0.0.1", "169.254.169.254", "fe80::1%eth0", "224.0.0.1", "100.100.100.200", "168.63.129.16",
		"192.0.0.192", "fd00:ec2::254", "fd20:ce::254", "64:ff9b::a9fe:a9fe", "64:ff9b::7f00:1", "64:ff9b:1::a9fe:a9fe", "2002:7f00:1::1", "::127.0.0.1", "64:ff9b::6464:64c8",
	}
	interfaces, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, own := range interfaces {
		prefix, err := netip.ParsePrefix(own.String())
		if err != nil {
			t.Fatal(err)
		}
		ours = append(ours, prefix.Addr().String())
		if addr := prefix.Addr().Unmap(); addr.Is4() {
			b := addr.As4()
			ours = append(ours, netip.AddrFrom16([16]byte{1: 0x64, 2: 0xff, 3: 0x9b, 12: b[0], 13: b[1], 14: b[2], 15: b[3]}).String())
		}
	}
	for _, addr := range ours {
		if !target.IsOurs(netip.MustParseAddr(addr)) {
			t.Errorf("%s is not refused", addr)
		}
	}
	for _, addr := range []string{"1.1.1.1", "10.255.254.253", "100.100.100.201", "2606:4700::1111", "64:ff9b::101:101", "fd12:3456::1"} {
		if target.IsOurs(netip.MustParseAddr(addr)) {
			t.Errorf("%s is refused", addr)
		}
	}
}
