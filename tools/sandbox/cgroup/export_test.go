//go:build linux

package cgroup

// Leave does what becomes of a group whose process is killed.
func (g *Group) Leave() {
	for _, p := range g.parts {
		_ = p.lock.Close()
	}
}

// Folders are where a group lies.
func (g *Group) Folders() (all []string) {
	for _, p := range g.parts {
		all = append(all, p.Path)
	}
	return all
}
