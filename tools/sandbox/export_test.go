//go:build linux

package sandbox

import "parley/tools/sandbox/cgroup"

// WithoutGroups is this box as it is on a machine that has no control groups.
func (b *Box) WithoutGroups() *Box {
	without := *b
	without.groups = cgroup.Place{}
	return &without
}

// Place is where the control groups of the box's commands are made.
func (b *Box) Place() cgroup.Place { return b.groups }
