package shellline

import (
	"path"
	"slices"
	"strings"
)

// A denier denies lines that no agent needs to run: they would stop the machine, or remove everything.
type denier struct {
	*findings
	directory *directory
}

// denyProgram denies the line if it runs a program that would only do harm, such as shutdown or rm -r /. It also
// records that cd changes the directory.
func (d *denier) denyProgram(u invocation) {
	args := u.words[1:]
	switch name := u.program(); name {
	case "cd", "pushd", "chdir":
		if rest := skipOptions(args); len(rest) > 0 {
			d.directory.enter(rest[0].path)
		}
	case "sudo", "doas", "su", "pkexec", "run0":
		d.deny("%s isn't available: commands don't run as root", name)
	case "shutdown", "reboot", "poweroff", "halt", "telinit":
		d.deny("%s would stop the machine", name)
	case "init":
		if len(args) > 0 && len(args[0].text) == 1 && strings.Contains("0123456sS", args[0].text) {
			d.deny("init %s would stop the machine", args[0].text)
		}
	case "systemctl":
		d.denySystemctl(args)
	case "rm":
		d.denyRemoval(args)
	case "chmod", "chown", "chgrp":
		d.denyPermissionChange(name, args)
	case "find", "fd", "fdfind":
		d.denyFind(u)
	case "dd":
		for _, a := range args {
			if to, ok := strings.CutPrefix(a.path, "of="); ok {
				d.denyDevice(word{to, to})
			}
		}
	case "tee", "shred", "truncate", "wipefs", "blkdiscard", "sgdisk", "fdisk", "sfdisk", "parted", "mkswap":
		for _, a := range args {
			d.denyDevice(a)
		}
	case "cp", "mv", "install", "rsync", "ln":
		d.denyCopy(name, args)
	case "format", "format.com":
		if slices.ContainsFunc(args, isDrive) {
			d.deny("format would erase a disk")
		}
	default:
		if name == "mkfs" || strings.HasPrefix(name, "mkfs.") || name == "mke2fs" {
			d.deny("%s would erase a disk", name)
		}
	}
}

func isDrive(a word) bool {
	return len(a.text) >= 2 && len(a.text) <= 3 && a.text[1] == ':' && strings.Trim(a.text[2:], `\/`) == ""
}

func (d *denier) denySystemctl(args []word) {
	for _, a := range args {
		switch a.text {
		case "reboot", "poweroff", "halt", "kexec", "soft-reboot", "suspend", "hibernate", "emergency", "rescue":
			d.deny("systemctl %s would stop the machine", a.text)
		}
		if !strings.HasPrefix(a.text, "-") {
			return
		}
	}
}

// denyRemoval denies the line if it removes everything, like rm -rf /. It marks the line as opaque if nobody can
// tell what is removed.
func (d *denier) denyRemoval(args []word) {
	recursive, plain := parseFlags(args, "rR", "--recursive")
	for _, a := range args {
		if recursive && a.text == "--no-preserve-root" {
			d.deny("rm --no-preserve-root would remove everything")
		}
	}
	for _, a := range plain {
		switch {
		case recursive && d.directory.coversRoot(a):
			d.deny("rm -r %s would remove everything", a.path)
		case recursive && strings.HasPrefix(a.text, Hole) && strings.HasPrefix(a.path, Hole):
			d.markOpaque("you can't tell what it removes until it runs")
		case !recursive && a.text == Hole && a.path == Hole:
			d.markOpaque("you can't tell what it removes until it runs")
		}
	}
}

// denyPermissionChange denies the line if it runs chmod, chown or chgrp on the root, or on a pattern for everything
// in it, recursively or giving everybody all rights.
func (d *denier) denyPermissionChange(name string, args []word) {
	recursive, plain := parseFlags(args, "R", "--recursive")
	if len(plain) == 0 {
		return
	}
	mode := strings.ToLower(plain[0].text)
	all := recursive || strings.HasSuffix(mode, "777") || strings.Contains(mode, "rwx")
	for _, a := range plain[1:] {
		if all && d.directory.coversRoot(a) {
			d.deny("%s %s %s would change the permissions of everything", name, plain[0].text, a.path)
		}
	}
}

// denyFind denies the line if a find in it removes everything.
func (d *denier) denyFind(u invocation) {
	root, removes := false, false
	before := true // options come after the directories
	for _, a := range u.words[1:] {
		switch a.text {
		case "-delete", "rm", "shred", "/bin/rm", "/usr/bin/rm":
			removes = true
		}
		before = before && (!strings.HasPrefix(a.text, "-") || slices.Contains([]string{"-L", "-P", "-H"}, a.text))
		root = root || before && d.directory.coversRoot(a)
	}
	here := len(u.words) > 1 && strings.HasPrefix(u.words[1].text, "-") && d.directory.path == "/"
	if (root || here) && removes {
		d.deny("find would remove everything")
	}
}

// denyCopy denies the line if it overwrites a disk or moves everything away.
func (d *denier) denyCopy(name string, args []word) {
	_, plain := parseFlags(args, "", "")
	if len(plain) == 0 {
		return
	}
	d.denyDevice(plain[len(plain)-1])
	for i, a := range plain {
		last := i == len(plain)-1
		switch {
		case name == "mv" && !last && d.directory.coversRoot(a):
			d.deny("mv %s would move everything away", a.path)
		case name == "rsync" && last && d.directory.coversRoot(a) && slices.ContainsFunc(args, func(a word) bool { return strings.HasPrefix(a.text, "--del") }):
			d.deny("rsync --delete would remove everything")
		}
	}
}

// denyDevice denies the line if it writes to a disk, to memory, or to the kernel's settings.
func (d *denier) denyDevice(w word) {
	p := d.directory.resolve(w.path)
	if p == "" {
		p = path.Clean("/" + strings.ReplaceAll(w.path, Hole, "x"))
		if !strings.HasPrefix(w.path, "/") {
			return
		}
	}
	switch {
	case strings.HasPrefix(p, "/proc/sysrq-trigger"), strings.HasPrefix(p, "/proc/sys/"), strings.HasPrefix(p, "/sys/power/"):
		d.deny("%s would change the kernel's settings", p)
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
			d.deny("%s is one of the machine's disks, or its memory", p)
		}
	}
	if strings.ContainsAny(device, "*?[") {
		d.deny("%s may be one of the machine's disks", p)
	}
}
