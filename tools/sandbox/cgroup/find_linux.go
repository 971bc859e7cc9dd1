package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	pids   = "pids"
	memory = "memory"
)

// ownLeaf is the group that this process moves to if its own group is to contain groups: in version
// 2 a group either has processes or divides its resources, not both.
const ownLeaf = "parley-server"

// Find finds out where control groups can be made, by making one there, and removes groups that
// were left by processes that died. If none can be made anywhere, the error says why.
func Find() (Place, error) {
	own, err := ownGroups()
	if err != nil {
		return Place{}, err
	}
	mounts, err := readMounts()
	if err != nil {
		return Place{}, err
	}
	at := map[string]folder{}
	var why error
	if m, ok := mounts[""]; ok {
		err := m.enableControllers(own[""], at)
		why = errors.Join(why, err)
	}
	for _, controller := range []string{pids, memory} {
		if m, ok := mounts[controller]; ok {
			if dir, ok := m.folderOf(own[controller]); ok {
				at[controller] = folder{Path: dir}
			}
		}
		if at[controller].Path == "" {
			continue
		}
		if err := tryMake(at[controller]); err != nil {
			delete(at, controller)
			why = errors.Join(why, err)
		}
	}
	p := Place{Pids: at[pids], Memory: at[memory]}
	if !p.IsUsable() {
		return p, errors.Join(errors.New("no control group can be made here"), why)
	}
	p.Sweep()
	return p, nil
}

// tryMake makes a group to see whether that works, and removes it.
func tryMake(in folder) error {
	g, err := Place{Pids: in}.Make(Limits{})
	if err != nil {
		return err
	}
	return g.Remove()
}

// ownGroups returns the groups that this process is in, by controller; "" is the
// controller of version 2.
func ownGroups() (map[string]string, error) {
	raw, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	own := map[string]string{}
	for line := range strings.Lines(string(raw)) {
		// number:controllers:path
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(parts) != 3 {
			continue
		}
		for controller := range strings.SplitSeq(parts[1], ",") {
			own[controller] = parts[2]
		}
	}
	return own, nil
}

// A mount is a mounted hierarchy of groups.
type mount struct {
	root string // the group at its top
	at   string
}

// readMounts returns the mounted hierarchies by controller; "" is the controller of
// version 2.
func readMounts() (map[string]mount, error) {
	raw, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	mounts := map[string]mount{}
	for line := range strings.Lines(string(raw)) {
		// number parent device root at options [optional] - type source superoptions
		before, after, _ := strings.Cut(line, " - ")
		where, what := strings.Fields(before), strings.Fields(after)
		if len(where) < 5 || len(what) < 3 {
			continue
		}
		m := mount{root: unescape.Replace(where[3]), at: unescape.Replace(where[4])}
		switch what[0] {
		case "cgroup2":
			mounts[""] = m
		case "cgroup":
			for controller := range strings.SplitSeq(what[2], ",") {
				mounts[controller] = m
			}
		}
	}
	return mounts, nil
}

// folderOf returns the folder of a group; false if the mount doesn't show that group.
func (m mount) folderOf(group string) (string, bool) {
	below, err := filepath.Rel(m.root, group)
	if err != nil || below == ".." || strings.HasPrefix(below, "../") {
		return "", false
	}
	return filepath.Join(m.at, below), true
}

// enableControllers finds the version 2 group below which groups can be made, enables its
// controllers for those groups, and sets its folder in at for each controller.
func (m mount) enableControllers(group string, at map[string]folder) error {
	own, ok := m.folderOf(group)
	if !ok {
		return nil
	}
	parent := filepath.Dir(own)
	switch {
	case hasDelegationMark(parent) || filepath.Base(own) == ownLeaf && m.isDelegated(parent):
		own = parent // its controllers may not be enabled yet
	case len(readControllers(own, "cgroup.controllers")) == 0:
		return nil // version 1 has the controllers
	case isRoot(own): // the machine's root group may have both processes and groups
		if own != m.at {
			return nil
		}
	case m.isDelegated(own):
		if err := moveToLeaf(own); err != nil {
			return err
		}
	default:
		return fmt.Errorf("the control group %s is not delegated to this process", own)
	}
	var failed error
	for _, controller := range readControllers(own, "cgroup.controllers") {
		// A controller that is already enabled need not be written, and cannot always be.
		if !slices.Contains(readControllers(own, "cgroup.subtree_control"), controller) {
			failed = errors.Join(failed, write(own, "cgroup.subtree_control", "+"+controller))
		}
	}
	for _, controller := range readControllers(own, "cgroup.subtree_control") {
		at[controller] = folder{Path: own, Unified: true}
	}
	return failed
}

// readControllers returns which of the two controllers used here, pids and memory, are named in a
// group's file.
func readControllers(dir, file string) (controllers []string) {
	raw, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return nil
	}
	for controller := range strings.FieldsSeq(string(raw)) {
		if controller == pids || controller == memory {
			controllers = append(controllers, controller)
		}
	}
	return controllers
}

// isDelegated reports whether the system has delegated a group to the processes in it: the group
// has a mark, or, in a container, nothing above it is visible.
func (m mount) isDelegated(dir string) bool {
	return hasDelegationMark(dir) || dir == m.at && !isRoot(dir)
}

// hasDelegationMark reports whether a group has the mark that systemd puts on groups that it
// delegates.
func hasDelegationMark(dir string) bool {
	for _, name := range []string{"user.delegate", "trusted.delegate"} {
		value := make([]byte, 8)
		if n, err := unix.Getxattr(dir, name, value); err == nil && string(value[:n]) == "1" {
			return true
		}
	}
	return false
}

// isRoot reports whether a group is the machine's root group, above all others.
func isRoot(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "cgroup.type"))
	return errors.Is(err, os.ErrNotExist)
}

// moveToLeaf moves this process to the group ownLeaf below its own group, if no other process is in
// its own group.
func moveToLeaf(own string) error {
	raw, err := os.ReadFile(filepath.Join(own, "cgroup.procs"))
	if err != nil {
		return err
	}
	if all := strings.Fields(string(raw)); len(all) != 1 || all[0] != strconv.Itoa(os.Getpid()) {
		return fmt.Errorf("the control group %s contains processes other than this one", own)
	}
	if err := os.Mkdir(filepath.Join(own, ownLeaf), 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return write(filepath.Join(own, ownLeaf), "cgroup.procs", strconv.Itoa(os.Getpid()))
}

// write writes to one of a group's files, which must exist.
func write(dir, file, text string) error {
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}
