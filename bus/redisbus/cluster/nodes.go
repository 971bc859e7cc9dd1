package cluster

import (
	"net"
	"slices"
	"strconv"
	"strings"
)

// A node is one line of what a node says about its Cluster.
type node struct {
	id, address string
	flags       []string
	masterID    string // for a replica: the id of its master
	epoch       int64  // the number of the promotion that gave it its slots
	slots       [][2]int
}

// hasFlag reports whether the node has a flag, such as master, myself or fail.
func (n *node) hasFlag(flag string) bool { return slices.Contains(n.flags, flag) }

// serves reports whether the node is the master of a slot.
func (n *node) serves(slot int) bool {
	return slices.ContainsFunc(n.slots, func(s [2]int) bool { return s[0] <= slot && slot <= s[1] })
}

// readNodes reads the answer to CLUSTER NODES of the node at an address.
func readNodes(text, from string) (nodes []node) {
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 8 {
			continue
		}
		n := node{id: f[0], flags: strings.Split(f[2], ","), masterID: f[3]}
		n.epoch, _ = strconv.ParseInt(f[6], 10, 64) // 0 if it can't be parsed
		n.address, _, _ = strings.Cut(f[1], "@")
		if host, port, err := net.SplitHostPort(n.address); err == nil && host == "" && n.hasFlag("myself") {
			host, _, _ = net.SplitHostPort(from) // a node that has not met others yet does not know its own address
			n.address = net.JoinHostPort(host, port)
		}
		for _, slots := range f[8:] {
			if s, ok := readSlots(slots); ok {
				n.slots = append(n.slots, s)
			}
		}
		nodes = append(nodes, n)
	}
	return nodes
}

// readSlots parses a slot or a range of slots. It returns false for a slot that is about to move, because until it
// has moved it is also in one of the ranges.
func readSlots(text string) (s [2]int, ok bool) {
	first, last, isRange := strings.Cut(text, "-")
	if !isRange {
		last = first
	}
	var errs [2]error
	s[0], errs[0] = strconv.Atoi(first)
	s[1], errs[1] = strconv.Atoi(last)
	return s, errs == [2]error{}
}
