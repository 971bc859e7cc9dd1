//go:build linux

package sandbox

import "parley/tools/sandbox/cgroup"

// WithoutGroups returns this box as it is on a machine without control groups.
func (b *Box) WithoutGroups() *Box {
	without := *b
	without.groups = cgroup.Place{}
	return &without
}

// Place returns where the control groups of the box's commands are made.
func (b *Box) Place() cgroup.Place { return b.groups }
