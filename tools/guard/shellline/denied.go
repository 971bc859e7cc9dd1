package shellline

import (
	"path"
	"slices"
	"strings"
)

// denyProgram marks the line as denied if it runs one of the programs that no agent needs and
// that do harm wherever they take effect.
func (c *collector) denyProgram(u invocation) {
	args := u.words[1:]
	switch name := u.program(); name {
	case "cd", "pushd", "chdir":
		if rest := skipOptions(args); len(rest) > 0 {
			c.cwd = c.resolve(rest[0].path)
		}
	case "sudo", "doas", "su", "pkexec", "run0":
		c.deny("%s is not available: commands run without the rights of root", name)
	case "shutdown", "reboot", "poweroff", "halt", "telinit":
		c.deny("%s would stop the machine", name)
	case "init":
		if len(args) > 0 && len(args[0].text) == 1 && strings.Contains("0123456sS", args[0].text) {
			c.deny("init %s would stop the machine", args[0].text)
		}
	case "systemctl":
		c.denySystemctl(args)
	case "rm":
		c.denyRemoval(args)
	case "chmod", "chown", "chgrp":
		c.denyPermissionChange(name, args)
	case "find", "fd", "fdfind":
		c.denyFind(u)
	case "dd":
		for _, a := range args {
			if to, ok := strings.CutPrefix(a.path, "of="); ok {
				c.denyDevice(word{to, to})
			}
		}
	case "tee", "shred", "truncate", "wipefs", "blkdiscard", "sgdisk", "fdisk", "sfdisk", "parted", "mkswap":
		for _, a := range args {
			c.denyDevice(a)
		}
	case "cp", "mv", "install", "rsync", "ln":
		c.denyCopy(name, args)
	case "format", "format.com":
		if slices.ContainsFunc(args, isDrive) {
			c.deny("format would erase a disk")
		}
	default:
		if name == "mkfs" || strings.HasPrefix(name, "mkfs.") || name == "mke2fs" {
			c.deny("%s would erase a disk", name)
		}
	}
}

func isDrive(a word) bool {
	return len(a.text) >= 2 && len(a.text) <= 3 && a.text[1] == ':' && strings.Trim(a.text[2:], `\/`) == ""
}

func (c *collector) denySystemctl(args []word) {
	for _, a := range args {
		switch a.text {
		case "reboot", "poweroff", "halt", "kexec", "soft-reboot", "suspend", "hibernate", "emergency", "rescue":
			c.deny("systemctl %s would stop the machine", a.text)
		}
		if !strings.HasPrefix(a.text, "-") {
			return
		}
	}
}

// denyRemoval marks the line as denied if it removes everything, as rm -rf / does.
func (c *collector) denyRemoval(args []word) {
	recursive, plain := parseFlags(args, "rR", "--recursive")
	for _, a := range args {
		if recursive && a.text == "--no-preserve-root" {
			c.deny("rm --no-preserve-root would remove everything")
		}
	}
	for _, a := range plain {
		switch {
		case recursive && c.coversRoot(a):
			c.deny("rm -r %s would remove everything", a.path)
		case recursive && strings.HasPrefix(a.text, Hole) && strings.HasPrefix(a.path, Hole):
			c.markOpaque("what it removes is known only as it runs")
		case !recursive && a.text == Hole && a.path == Hole:
			c.markOpaque("what it removes is known only as it runs")
		}
	}
}

// parseFlags reports whether args have an option with one of the letters in short or with the
// name long, and returns the arguments that are no options.
func parseFlags(args []word, short, long string) (given bool, plain []word) {
	for i, a := range args {
		switch {
		case a.text == "--":
			return given, append(plain, args[i+1:]...)
		case strings.HasPrefix(a.text, "--"):
			// A long option may be cut short.
			given = given || len(a.text) > 3 && strings.HasPrefix(long, a.text)
		case strings.HasPrefix(a.text, "-") && a.text != "-":
			given = given || strings.ContainsAny(a.text[1:], short)
		default:
			plain = append(plain, a)
		}
	}
	return given, plain
}

// denyPermissionChange marks the line as denied if chmod, chown or chgrp, called with these arguments,
// would change the rights or the owner of everything.
func (c *collector) denyPermissionChange(name string, args []word) {
	recursive, plain := parseFlags(args, "R", "--recursive")
	if len(plain) == 0 {
		return
	}
	mode := strings.ToLower(plain[0].text)
	all := recursive || strings.HasSuffix(mode, "777") || strings.Contains(mode, "rwx")
	for _, a := range plain[1:] {
		if all && c.coversRoot(a) {
			c.deny("%s %s %s would change the rights of everything", name, plain[0].text, a.path)
		}
	}
}

// denyFind marks the line as denied if a find in it removes everything.
func (c *collector) denyFind(u invocation) {
	root, removes := false, false
	before := true // options come after the directories
	for _, a := range u.words[1:] {
		switch a.text {
		case "-delete", "rm", "shred", "/bin/rm", "/usr/bin/rm":
			removes = true
		}
		before = before && (!strings.HasPrefix(a.text, "-") || slices.Contains([]string{"-L", "-P", "-H"}, a.text))
		root = root || before && c.coversRoot(a)
	}
	here := len(u.words) > 1 && strings.HasPrefix(u.words[1].text, "-") && c.cwd == "/"
	if (root || here) && removes {
		c.deny("find would remove everything")
	}
}

// denyCopy marks the line as denied if it writes over a disk or moves everything away.
func (c *collector) denyCopy(name string, args []word) {
	_, plain := parseFlags(args, "", "")
	if len(plain) == 0 {
		return
	}
	c.denyDevice(plain[len(plain)-1])
	for i, a := range plain {
		last := i == len(plain)-1
		switch {
		case name == "mv" && !last && c.coversRoot(a):
			c.deny("mv %s would move everything away", a.path)
		case name == "rsync" && last && c.coversRoot(a) && slices.ContainsFunc(args, func(a word) bool { return strings.HasPrefix(a.text, "--del") }):
			c.deny("rsync --delete would remove everything")
		}
	}
}

// resolve returns the absolute path for the path p, seen from the directory to which the line has
// changed; "" if that cannot be told.
func (c *collector) resolve(p string) string {
	switch {
	case strings.Contains(p, Hole):
		return ""
	case strings.HasPrefix(p, "/"):
		return path.Clean(p)
	case c.cwd != "":
		return path.Join(c.cwd, p)
	}
	return ""
}

// coversRoot reports whether a path is the root, or a pattern for everything in it.
func (c *collector) coversRoot(w word) bool {
	p := c.resolve(w.path)
	if p == "/" {
		return true
	}
	if p == "" {
		return false
	}
	parts := strings.Split(strings.TrimPrefix(p, "/"), "/")
	return !slices.ContainsFunc(parts, func(part string) bool { return !strings.ContainsAny(part, "*?[") })
}

// denyDevice marks the line as denied if it writes to a disk, to memory, or to the kernel's own
// switches.
func (c *collector) denyDevice(w word) {
	p := c.resolve(w.path)
	if p == "" {
		p = path.Clean("/" + strings.ReplaceAll(w.path, Hole, "x"))
		if !strings.HasPrefix(w.path, "/") {
			return
		}
	}
	switch {
	case strings.HasPrefix(p, "/proc/sysrq-trigger"), strings.HasPrefix(p, "/proc/sys/"), strings.HasPrefix(p, "/sys/power/"):
		c.deny("%s is the kernel's own switch", p)
		return
	}
	device, ok := strings.CutPrefix(p, "/dev/")
	if !ok {
		return
	}
	for _, prefix := range []string{
		"sd", "hd", "vd", "xvd", "nvme", "mmcblk", "dm-", "md", "mapper/", "disk/", "loop", "nbd", "ram", "sr", "mem", "kmem", "port", "block/",
	} {
		if strings.HasPrefix(device, prefix) {
			c.deny("%s is a disk or memory of the machine", p)
		}
	}
	if strings.ContainsAny(device, "*?[") {
		c.deny("%s may be a disk of the machine", p)
	}
}
