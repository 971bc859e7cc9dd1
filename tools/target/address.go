package target

import (
	"net"
	"net/netip"
	"slices"
)

// IsOwn reports whether an address belongs to this machine; false if the machine's addresses cannot be listed. A
// server at it may be meant for this machine only, because firewalls let a machine's own packets through.
func IsOwn(addr netip.Addr) bool {
	interfaces, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	for _, own := range interfaces {
		if prefix, err := netip.ParsePrefix(own.String()); err == nil && prefix.Addr().Unmap() == addr {
			return true
		}
	}
	return false
}

// IsOurs reports whether an address leads to this machine, to its own network segment (link-local
// and multicast), or to the metadata service that only a cloud's machines can reach. An address
// that is translated to such an address on its way counts, too.
func IsOurs(addr netip.Addr) bool {
	addr = addr.WithZone("").Unmap()
	if inner, ok := embeddedIPv4(addr); ok && isOurs(inner) {
		return true
	}
	return isOurs(addr)
}

func isOurs(addr netip.Addr) bool {
	return addr.IsLoopback() || addr.IsUnspecified() || addr.IsLinkLocalUnicast() || addr.IsMulticast() ||
		addr.Is4() && addr.As4()[0] == 0 || // some systems treat 0.x.x.x as their own address
		slices.ContainsFunc(metadataPrefixes(), func(prefix string) bool { return netip.MustParsePrefix(prefix).Contains(addr) }) ||
		IsOwn(addr)
}

// metadataPrefixes returns those addresses of clouds' metadata services that are not link-local.
func metadataPrefixes() []string {
	return []string{
		"100.100.100.200/32", // Alibaba
		"168.63.129.16/32",   // Azure
		"192.0.0.192/32",     // Oracle
		"fd00:ec2::/32",      // AWS
		"fd20:ce::254/128",   // Google
	}
}

// embeddedIPv4 returns the IPv4 address to which gateways translate an IPv6 address (NAT64, 6to4,
// and the obsolete IPv4-compatible addresses); false if there is none.
func embeddedIPv4(addr netip.Addr) (netip.Addr, bool) {
	if !addr.Is6() {
		return addr, false
	}
	b := addr.As16()
	for prefix, at := range map[string]int{"64:ff9b::/96": 12, "64:ff9b:1::/48": 12, "2002::/16": 2, "::/96": 12} {
		if netip.MustParsePrefix(prefix).Contains(addr) && addr != netip.IPv6Loopback() {
			return netip.AddrFrom4([4]byte(b[at : at+4])), true
		}
	}
	return addr, false
}
