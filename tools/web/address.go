package web

import (
	"net/netip"
	"syscall"

	"parley/tools"
	"parley/tools/target"
)

// Refuse returns why web_fetch makes no connection to an address, or "" for an address in the
// public web. It refuses whatever is not plainly public: private, loopback and link-local networks,
// a cloud's metadata, addresses reserved for documentation and multicast, and addresses that are
// translated to others on their way, because nobody can tell where these lead.
func Refuse(addr netip.Addr) string {
	addr = addr.WithZone("").Unmap()
	if !addr.IsValid() {
		return "it isn't an address"
	}
	if addr.Is6() && !netip.PrefixFrom(netip.AddrFrom16([16]byte{0x20}), 3).Contains(addr) {
		return refusalOfIPv6(addr, "it isn't an address of the public web")
	}
	for _, block := range refusedBlocks() {
		if netip.MustParsePrefix(block.prefix).Contains(addr) {
			return block.why
		}
	}
	if target.IsOwn(addr) {
		return "it is an address of the machine that this runs on"
	}
	return ""
}

// refusalOfIPv6 returns the reason for refusing an IPv6 address of a kind that people know by a
// name; for any other address it returns otherwise.
func refusalOfIPv6(addr netip.Addr, otherwise string) string {
	switch {
	case addr.IsLoopback():
		return "it is a loopback address"
	case addr.IsLinkLocalUnicast():
		return "it is a link-local address"
	case addr.IsPrivate():
		return "it is a private address"
	}
	return otherwise
}

type refusedBlock struct{ prefix, why string }

// refusedBlocks returns the networks of IPv4, and of the IPv6 range that is in use (2000::/3), that
// are not part of the public web.
func refusedBlocks() []refusedBlock {
	const (
		private    = "it is a private address"
		reserved   = "it is a reserved address"
		translated = "it is an address that is translated into another"
	)
	return []refusedBlock{
		{"0.0.0.0/8", reserved},
		{"10.0.0.0/8", private},
		{"100.64.0.0/10", private}, // behind a provider's translation
		{"127.0.0.0/8", "it is a loopback address"},
		{"168.63.129.16/32", "it is the address of a cloud's metadata"},
		{"169.254.0.0/16", "it is a link-local address"},
		{"172.16.0.0/12", private},
		{"192.0.0.0/24", reserved},
		{"192.0.2.0/24", reserved},
		{"192.88.99.0/24", translated}, // relays of 6to4
		{"192.168.0.0/16", private},
		{"198.18.0.0/15", reserved},
		{"198.51.100.0/24", reserved},
		{"203.0.113.0/24", reserved},
		{"224.0.0.0/4", "it is a multicast address"},
		{"240.0.0.0/4", reserved},
		{"2001::/32", translated}, // Teredo
		{"2001::/23", reserved},   // reserved by the IETF for protocols
		{"2001:db8::/32", reserved},
		{"2002::/16", translated}, // 6to4
		{"3fff::/20", reserved},
	}
}

// checkBeforeConnect returns a function that a dialer calls right before each connection, after the
// name was looked up, with the address that it actually connects to. The function fails if refuse
// returns a reason.
func checkBeforeConnect(refuse func(netip.Addr) string) func(network, address string, _ syscall.RawConn) error {
	return func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return tools.Errorf(tools.PermissionDenied, "no connection to %q: it isn't an address", address)
		}
		if why := refuse(to.Addr()); why != "" {
			return tools.Errorf(tools.PermissionDenied, "no connection to %s: %s. web_fetch reads the public web alone.", to.Addr(), why)
		}
		return nil
	}
}
