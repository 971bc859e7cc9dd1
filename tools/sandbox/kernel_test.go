//go:build linux

package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"parley/tools/sandbox"
)

// everyMode runs a test in each mode, including the one without isolation.
func everyMode(t *testing.T, test func(t *testing.T, b *sandbox.Box)) {
	t.Helper()
	eachMode(t, test)
	t.Run("none", func(t *testing.T) { test(t, openBox(t, sandbox.None, func(*sandbox.Config) {})) })
}

// ownFiles returns the names below a process's folder in /proc to which it may write, because they only affect itself.
func ownFiles() map[string]bool {
	own := map[string]bool{}
	for name := range strings.FieldsSeq(`autogroup clear_refs comm coredump_filter current exec fscreate keycreate sockcreate prev
		gid_map uid_map projid_map setgroups loginuid sessionid mem oom_adj oom_score_adj sched timens_offsets timerslack_ns make-it-fail fail-nth context`) {
		own[name] = true
	}
	return own
}

// devices returns the devices to which every program may write.
func devices() map[string]bool {
	all := map[string]bool{}
	for name := range strings.FieldsSeq(`/dev/null /dev/zero /dev/full /dev/random /dev/urandom /dev/tty /dev/ptmx /dev/pts/ptmx`) {
		all[name] = true
	}
	return all
}

// walkKernel prints each file below the kernel's folders that can be opened for writing. It writes nothing. It leaves
// out files about the command's own processes, and the devices of every program; if theirs is true, also files that all
// users of this machine may write to.
func walkKernel(theirs bool) error {
	own, free := ownFiles(), devices()
	var tried int
	for _, top := range []string{"/proc", "/sys", "/dev", "/run", "/etc", "/usr/lib/modules", "/boot"} {
		err := filepath.WalkDir(top, func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return nil // nothing can be opened there
			}
			if e.IsDir() {
				// Files that all processes share are in /proc itself. Looking at one process is enough, and its threads
				// have the same files.
				rest, inProc := strings.CutPrefix(path, "/proc/")
				first, below, _ := strings.Cut(rest, "/")
				if _, err := strconv.Atoi(first); inProc && err == nil && first != strconv.Itoa(os.Getpid()) && first != "1" || below == "task" || below == "fd" || below == "map_files" {
					return fs.SkipDir
				}
				if path == "/dev/shm" || path == "/dev/mqueue" { // limited by the command's own limits
					return fs.SkipDir
				}
				return nil
			}
			if e.Type()&fs.ModeSymlink != 0 || free[path] {
				return nil
			}
			if strings.HasPrefix(path, "/proc/") && own[e.Name()] && strings.Count(path, "/") > 2 && !strings.HasPrefix(path, "/proc/sys/") {
				return nil
			}
			info, err := e.Info()
			if err != nil || theirs && info.Mode()&0o002 != 0 {
				return nil
			}
			tried++
			fd, err := unix.Open(path, unix.O_WRONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
			if err != nil {
				return nil
			}
			fmt.Println("writable:", path)
			return unix.Close(fd)
		})
		if err != nil {
			return err
		}
	}
	fmt.Println("tried:", tried)
	return nil
}

// No command can open a file of the kernel for writing, whoever runs this program. The test tries all files inside,
// because root may write to thousands of files that control the machine.
func TestNothingOfTheKernelCanBeWritten(t *testing.T) {
	everyMode(t, func(t *testing.T, b *sandbox.Box) {
		what := []string{"walk kernel"}
		if b.Mode() == sandbox.None {
			what = append(what, "theirs") // without isolation, devices of all users are allowed
		}
		r := tryInside(t, b, t.TempDir(), what...)
		if r.ExitCode != 0 || strings.Contains(r.Stdout, "writable:") {
			t.Errorf("it ended with %d: %s%s", r.ExitCode, r.Stdout, r.Stderr)
		}
		if b.Mode() != sandbox.Landlock && strings.Contains(r.Stdout, "tried: 0\n") {
			t.Errorf("it has found nothing to try: %s", r.Stdout)
		}
		for _, path := range []string{"/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sysrq-trigger", "/proc/irq/default_smp_affinity", "/sys/kernel/uevent_helper", "/sys/power/state"} {
			if r := runShell(t, b, t.TempDir(), `true >>"$1"`, path); r.ExitCode == 0 {
				t.Errorf("%s could be opened", path)
			}
		}
	})
}

// No command of any kind runs as root, and none has a capability or a group of root.
func TestNoCommandIsRoot(t *testing.T) {
	everyMode(t, func(t *testing.T, b *sandbox.Box) {
		dir := t.TempDir()
		must(t, os.MkdirAll(filepath.Join(dir, "jobs", "one"), 0o755))
		program := testProgram(t)
		inside := sandbox.Command{Args: []string{program, "attempt", "who"}, Workspace: dir}
		kinds := map[string]sandbox.Command{"a plain one": inside}
		c := inside
		c.Workspace = ""
		kinds["one without a workspace"] = c
		c.Owner = t.TempDir()
		kinds["one of an owner"] = c
		c = inside
		c.ReadOnly = true
		kinds["one that reads"] = c
		c = inside
		c.WritableDir = "jobs/one"
		kinds["a job"] = c
		c.WritesAll = true
		kinds["a job that writes"] = c
		kinds["this program"] = sandbox.Command{OwnProgram: true, Args: []string{"attempt", "who"}}
		for name, c := range kinds {
			c.Network = b.Mode() == sandbox.None && !c.OwnProgram
			r, err := b.Run(t.Context(), c)
			if err != nil || r.ExitCode != 0 {
				t.Errorf("%s gave %+v, %v", name, r, err)
			}
		}
	})
}

// checkNotRoot returns an error if this process has any of root's rights.
func checkNotRoot() error {
	var ids [6]int
	ids[0], ids[1], ids[2] = unix.Getresuid()
	ids[3], ids[4], ids[5] = unix.Getresgid()
	for _, id := range ids {
		if id == 0 {
			return fmt.Errorf("its ids are %v", ids)
		}
	}
	groups, err := unix.Getgroups()
	if err != nil {
		return err
	}
	if slices.Contains(groups, 0) {
		return fmt.Errorf("its groups are %v", groups)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var has [2]unix.CapUserData
	if err := unix.Capget(&header, &has[0]); err != nil || has != [2]unix.CapUserData{} {
		return fmt.Errorf("its capabilities are %v, %w", has, err)
	}
	none, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	if err != nil || none != 1 {
		return fmt.Errorf("it can get rights by running a program: %d, %w", none, err)
	}
	if err := unix.Setuid(0); err == nil {
		return errors.New("it could become root")
	}
	return nil
}

// A workspace that belonged to root is given to the commands' user, completely and once, except for files with a second
// name, which may be outside. Files that root adds later are given, too.
func TestAWorkspaceOfRootsIsGiven(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root runs commands as another user")
	}
	everyMode(t, func(t *testing.T, b *sandbox.Box) {
		dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "theirs")
		must(t, os.MkdirAll(filepath.Join(dir, "a", "b"), 0o700))
		must(t, os.WriteFile(filepath.Join(dir, "a", "b", "file"), []byte("old\n"), 0o600))
		must(t, os.WriteFile(outside, []byte("x"), 0o600))
		must(t, os.Link(outside, filepath.Join(dir, "a", "linked")))
		must(t, os.Symlink(outside, filepath.Join(dir, "a", "pointed")))
		const line = `set -e; cat a/b/file; echo more >>a/b/file; mkdir a/b/c; mv a/b/file a/b/c; rm -r a/b; ! echo evil 2>/dev/null >a/linked`
		if r := runShell(t, b, dir, line); r.ExitCode != 0 || r.Stdout != "old\n" {
			t.Errorf("it gave %+v", r)
		}
		must(t, os.MkdirAll(filepath.Join(dir, "later", "still"), 0o700))
		must(t, os.WriteFile(filepath.Join(dir, "later", "still", "file"), []byte("old\n"), 0o600))
		if r := runShell(t, b, dir, `set -e; echo more >>later/still/file; rm -r later`); r.ExitCode != 0 {
			t.Errorf("later it gave %+v", r)
		}
		for path, want := range map[string]uint32{dir: sandbox.CommandUser, filepath.Join(dir, "a"): sandbox.CommandUser, outside: 0} {
			info, err := os.Lstat(path)
			must(t, err)
			if st := info.Sys().(*syscall.Stat_t); st.Uid != want || st.Gid != want {
				t.Errorf("%s belongs to %d:%d", path, st.Uid, st.Gid)
			}
		}
		if raw, err := os.ReadFile(outside); err != nil || string(raw) != "x" {
			t.Errorf("outside there is %q, %v", raw, err)
		}
	})
}

// A command works in a user's workspace as that user, whose group is never root's.
func TestAWorkspaceKeepsItsOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root runs commands as another user")
	}
	everyMode(t, func(t *testing.T, b *sandbox.Box) {
		dir := t.TempDir()
		must(t, os.Chown(dir, 4242, 0))
		must(t, os.WriteFile(filepath.Join(dir, "roots"), []byte("x"), 0o600))
		if r := runShell(t, b, dir, `echo "$(id -u) $(id -G)" >who; cat who roots`); r.Stdout != "4242 65527\nx" {
			t.Errorf("it gave %+v", r)
		}
	})
}

// Root's own directory, in which a person works, is given to nobody: a command works there as another user, and its
// files belong to root. Other users' files there stay theirs, and no program there gives the command rights.
func TestRootsOwnDirectoryIsKept(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root has a directory of root's")
	}
	everyMode(t, func(t *testing.T, b *sandbox.Box) {
		dir := t.TempDir()
		must(t, os.MkdirAll(filepath.Join(dir, "a", "b"), 0o700))
		must(t, os.WriteFile(filepath.Join(dir, "a", "b", "file"), []byte("old\n"), 0o600))
		must(t, os.WriteFile(filepath.Join(dir, "other"), []byte("other\n"), 0o644))
		must(t, os.Chown(filepath.Join(dir, "other"), 4242, 4242))
		must(t, os.Chmod(filepath.Join(dir, "other"), 0o644))
		if err := sandbox.CheckPersonal(dir); err != nil {
			if !errors.Is(err, sandbox.ErrRootsOwn) {
				t.Fatal(err)
			}
			t.Skipf("NOT TESTED: this system cannot show a directory of root's to others: %v", err)
		}
		r, err := b.Run(t.Context(), sandbox.Command{
			Args:      []string{"sh", "-c", `set -e; id -u; cat a/b/file other; echo more >>a/b/file; echo new >new; chmod 700 new; mkdir made; mv a/b made/b; ! echo evil 2>/dev/null >>other; ! chmod u+s new 2>/dev/null; stat -c %u new made .`},
			Workspace: dir, Personal: true, Network: b.Mode() == sandbox.None,
		})
		if err != nil || r.ExitCode != 0 || r.Stdout != "65527\nold\nother\n65527\n65527\n65527\n" {
			t.Errorf("it gave %+v, %v", r, err)
		}
		for path, want := range map[string]uint32{"made/b/file": 0, "new": 0, "made": 0, "other": 4242, ".": 0} {
			info, err := os.Lstat(filepath.Join(dir, path))
			must(t, err)
			if st := info.Sys().(*syscall.Stat_t); st.Uid != want || st.Gid != want || info.Mode()&fs.ModeSetuid != 0 {
				t.Errorf("%s belongs to %d:%d, mode %v", path, st.Uid, st.Gid, info.Mode())
			}
		}
	})
}

// A command works in another user's own directory as that user, and root's files there stay root's.
func TestAnothersOwnDirectoryIsKept(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root works in another's directory")
	}
	everyMode(t, func(t *testing.T, b *sandbox.Box) {
		dir := t.TempDir()
		must(t, os.Chown(dir, 4242, 4242))
		must(t, os.WriteFile(filepath.Join(dir, "roots"), nil, 0o600))
		r, err := b.Run(t.Context(), sandbox.Command{Args: []string{"touch", "x"}, Workspace: dir, Personal: true, Network: b.Mode() == sandbox.None})
		if err != nil || r.ExitCode != 0 {
			t.Errorf("in another's it gave %+v, %v", r, err)
		}
		info, err := os.Stat(filepath.Join(dir, "roots"))
		must(t, err)
		if info.Sys().(*syscall.Stat_t).Uid != 0 {
			t.Error("a file of root's was given away")
		}
	})
}

// A program with a set-ID bit would run with its owner's rights for everybody who comes to the workspace from outside.
// No system call sets one, and none that exists is kept.
func TestNoSetIDBits(t *testing.T) {
	everyMode(t, func(t *testing.T, b *sandbox.Box) {
		dir := t.TempDir()
		if r := tryInside(t, b, dir, "set-ID"); r.ExitCode != 0 {
			t.Errorf("it ended with %d: %s%s", r.ExitCode, r.Stdout, r.Stderr)
		}
		if r := tryInside(t, b, dir, "ring"); r.ExitCode != 9 { // it also makes files
			t.Errorf("io_uring ended with %d: %s%s", r.ExitCode, r.Stdout, r.Stderr)
		}
		if r := runShell(t, b, dir, `umask 022; echo x >a; chmod 755 a; chmod 1777 a; mkdir -m 1777 d; test -x a`); r.ExitCode != 0 {
			t.Errorf("what sets none ended with %+v", r)
		}
	})
	everyMode(t, func(t *testing.T, b *sandbox.Box) {
		dir := t.TempDir()
		left := filepath.Join(dir, "left")
		must(t, os.WriteFile(left, nil, 0o755))
		must(t, unix.Chmod(left, 0o6755))
		runShell(t, b, dir, `true`)
		if info, err := os.Stat(left); err != nil || info.Mode() != 0o755 {
			t.Errorf("its mode is %v, %v", info.Mode(), err)
		}
	})
}

// tryIOUring tries the calls of io_uring. A call that the kernel carries out fails for another reason, because its
// arguments are empty.
func tryIOUring() error {
	for _, call := range []uintptr{unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER} {
		if _, _, failed := unix.Syscall6(call, 0, 0, 0, 0, 0, 0); failed != unix.ENOSYS {
			return nil
		}
	}
	return unix.ENOSYS
}

// trySetIDs tries every system call that gives a file a set-ID bit.
func trySetIDs() error {
	if err := os.WriteFile("file", nil, 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile("file", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	dir, err := os.Open(".")
	if err != nil {
		return err
	}
	defer dir.Close()
	fd, at := int(f.Fd()), int(dir.Fd())
	n := 0
	made := func(flags int) string {
		n++
		return fmt.Sprintf("new%d-%x", n, flags)
	}
	for _, bit := range []uint32{unix.S_ISUID, unix.S_ISGID} {
		mode := 0o755 | bit
		opened := func(fd int, err error) error {
			if err == nil {
				_ = unix.Close(fd)
			}
			return err
		}
		for name, call := range map[string]func() error{
			"chmod": func() error { return unix.Chmod("file", mode) }, "fchmod": func() error { return unix.Fchmod(fd, mode) },
			"fchmodat":  func() error { return unix.Fchmodat(at, "file", mode, 0) },
			"fchmodat2": func() error { return unix.Fchmodat(at, "file", mode, unix.AT_SYMLINK_NOFOLLOW) },
			"open":      func() error { return opened(unix.Open(made(0), unix.O_CREAT|unix.O_RDWR, mode)) },
			"openat":    func() error { return opened(unix.Openat(at, made(1), unix.O_CREAT|unix.O_RDWR, mode)) },
			"tmpfile":   func() error { return opened(unix.Openat(at, ".", unix.O_TMPFILE|unix.O_RDWR, mode)) },
			"openat2": func() error {
				return opened(unix.Openat2(at, made(2), &unix.OpenHow{Flags: unix.O_CREAT | unix.O_RDWR, Mode: uint64(mode)}))
			},
			"mknod": func() error { return unix.Mknod(made(3), unix.S_IFREG|mode, 0) }, "mknodat": func() error { return unix.Mknodat(at, made(4), unix.S_IFREG|mode, 0) },
		} {
			if err := call(); err == nil {
				return fmt.Errorf("%s worked with %o", name, mode)
			}
		}
	}
	entries, err := os.ReadDir(".")
	for _, e := range entries {
		if info, infoErr := e.Info(); infoErr != nil || info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0 {
			return fmt.Errorf("%s has the mode %v, %w", e.Name(), info.Mode(), infoErr)
		}
	}
	return err
}

// makeNested makes that many folders, each inside the one before.
func makeNested(depth int) error {
	for range depth {
		if err := os.Mkdir("d", 0o700); err != nil {
			return err
		}
		if err := os.Chdir("d"); err != nil {
			return err
		}
	}
	return os.WriteFile("deepest", nil, 0o600)
}

// Folders that are nested too deep end the command that makes them, and are removed: the next command runs.
func TestDeepFoldersAreRemoved(t *testing.T) {
	everyMode(t, func(t *testing.T, b *sandbox.Box) {
		dir := t.TempDir()
		must(t, os.WriteFile(filepath.Join(dir, "file"), []byte("kept"), 0o644))
		deep := func(depth int, where string, more string) sandbox.Result {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			r, err := b.Run(ctx, sandbox.Command{
				Args:      []string{"sh", "-c", where + more, testProgram(t), testProgram(t), "attempt", "nest", strconv.Itoa(depth)},
				Workspace: dir, Network: b.Mode() == sandbox.None, Quota: sandbox.Quota{Bytes: 200 << 20, Items: 20_000},
			})
			must(t, err)
			return r
		}
		for _, more := range []string{`"$@"`, `"$@"; chmod 500 d/d; chmod 000 d`} {
			if r := deep(6000, "", more); r.Killed != sandbox.Disk || !strings.Contains(r.Detail, "nested more than") {
				t.Errorf("it ended with %d, %q, %q: %s", r.ExitCode, r.Killed, r.Detail, r.Stdout+r.Stderr)
			}
			// The first command may have taken its own rights away before it was ended.
			if r := runShell(t, b, dir, `chmod -R u+rwX d; find . | wc -l; cat file; rm -r d`); r.ExitCode != 0 || r.Killed != "" || !strings.HasSuffix(r.Stdout, "kept") || strings.Contains(r.Stdout, "tmp") {
				t.Errorf("the next command gave %+v", r)
			}
			if names, err := filepath.Glob(filepath.Join(dir, ".parley-*")); err != nil || len(names) > 0 {
				t.Errorf("left behind: %v, %v", names, err)
			}
		}
		if r := deep(200, "", `"$@"`); r.Killed != "" || r.ExitCode != 0 {
			t.Errorf("what may be nested ended with %+v", r)
		}
		tmp := t.TempDir()
		must(t, os.Chmod(tmp, 0o777))
		t.Setenv("TMPDIR", tmp)
		if r := deep(6000, `cd "$TMPDIR" && `, `"$@"`); r.Killed != "" && r.Killed != sandbox.Disk {
			t.Errorf("among temporary files it ended with %+v", r)
		}
		if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
			t.Errorf("of temporary files there are left %v, %v", left, err)
		}
		if r := runShell(t, b, dir, `cat file`); r.Stdout != "kept" {
			t.Errorf("at last it gave %+v", r)
		}
	})
}

// Deep folders that an earlier release, or a supervisor that was killed, has left don't keep commands from running.
func TestDeepFoldersOfEarlierReleases(t *testing.T) {
	eachMode(t, func(t *testing.T, b *sandbox.Box) {
		dir := t.TempDir()
		left := filepath.Join(dir, ".parley-abcdefghijklmnopqrstuvwxyz.tmp")
		must(t, os.MkdirAll(filepath.Join(left, "a", "b"), 0o700))
		must(t, mkdirDeep(dir, 1500))
		if r := runShell(t, b, dir, `find . | wc -l`); r.ExitCode != 0 || r.Killed != "" && r.Killed != sandbox.Disk {
			t.Errorf("it gave %+v", r)
		}
		if r := runShell(t, b, dir, `rm -r d`); r.ExitCode != 0 || r.Killed != "" {
			t.Errorf("the next gave %+v", r)
		}
		if _, err := os.Lstat(left); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("what was being removed is still there: %v", err)
		}
	})
}

// mkdirDeep makes that many folders below a folder, each inside the one before.
func mkdirDeep(dir string, depth int) error {
	at, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	for ; err == nil && depth > 0; depth-- {
		if err = unix.Mkdirat(at, "d", 0o700); err != nil {
			break
		}
		next, failed := unix.Openat(at, "d", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		err = errors.Join(failed, unix.Close(at))
		at = next
	}
	return errors.Join(err, unix.Close(at))
}

// A command can't find out from the processes around it where its workspace is on this machine.
func TestTheHostPathOfAWorkspaceIsHidden(t *testing.T) {
	b := openBox(t, sandbox.Bubblewrap, func(*sandbox.Config) {})
	dir := t.TempDir()
	if r := runShell(t, b, dir, `cat /proc/*/cmdline /proc/*/environ 2>/dev/null | tr '\0' '\n'`); !strings.Contains(r.Stdout, "bwrap") || strings.Contains(r.Stdout, filepath.Base(filepath.Dir(dir))) {
		t.Errorf("it reads %s", r.Stdout)
	}
}

// A folder that commands may read can be read even if only root can, and can't be written.
func TestFoldersOfRootsAloneAreShown(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root shows what is root's")
	}
	shown, read := t.TempDir(), t.TempDir()
	for _, dir := range []string{shown, read} {
		must(t, os.WriteFile(filepath.Join(dir, "run"), []byte("#!/bin/sh\necho ran\n"), 0o700))
		must(t, os.Chmod(dir, 0o700))
	}
	if err := sandbox.CheckPersonal(shown); err != nil {
		t.Skipf("NOT TESTED: this system cannot show a directory of root's to others: %v", err)
	}
	eachModeWith(t, func(cfg *sandbox.Config) { cfg.Read = append(cfg.Read, read) }, func(t *testing.T, b *sandbox.Box) {
		r, err := b.Run(t.Context(), sandbox.Command{
			Args:      []string{"sh", "-c", `set -e; "$SHOWN/run"; "$1/run"; for d in "$SHOWN" "$1"; do ! true 2>/dev/null >"$d/new"; ! true 2>/dev/null >>"$d/run"; ! chmod 777 "$d/run" 2>/dev/null; done`, "sh", read},
			Workspace: t.TempDir(), ShownFolders: []sandbox.Shown{{Path: shown, PathInside: "/skills/one", Env: "SHOWN"}},
		})
		if err != nil || r.ExitCode != 0 || r.Stdout != "ran\nran\n" {
			t.Errorf("it gave %+v, %v", r, err)
		}
	})
}

// A file that a command may only read can't be changed through a descriptor either: not its mode, times, owner or
// attributes. In its own workspace, a command can change modes and times this way.
func TestReadableFilesAreNotChanged(t *testing.T) {
	eachMode(t, func(t *testing.T, b *sandbox.Box) {
		shown, dir := t.TempDir(), t.TempDir()
		file := filepath.Join(shown, "file")
		must(t, os.WriteFile(file, []byte("x"), 0o640))
		must(t, os.MkdirAll(filepath.Join(dir, "jobs", "one"), 0o755))
		must(t, os.WriteFile(filepath.Join(dir, "file"), []byte("x"), 0o640))
		before, own := describeFolder(t, shown), describeFolder(t, dir)
		run := func(c sandbox.Command, path, may string) {
			t.Helper()
			c.Args = []string{"sh", "-c", `exec "$1" attempt change "$2" "$3"`, "sh", testProgram(t), path, may}
			c.Workspace = dir
			r, err := b.Run(t.Context(), c)
			if err != nil || r.ExitCode != 0 {
				t.Errorf("%s gave %+v, %v", path, r, err)
			}
		}
		path := file
		if b.Mode() == sandbox.Bubblewrap {
			path = "/skills/one/file"
		}
		run(sandbox.Command{ShownFolders: []sandbox.Shown{{Path: shown, PathInside: "/skills/one"}}}, path, "not")
		run(sandbox.Command{ReadOnly: true}, "file", "not")
		run(sandbox.Command{WritableDir: "jobs/one"}, "file", "not")
		if now := describeFolder(t, shown); now != before {
			t.Errorf("the folder was\n%s\nand is\n%s", before, now)
		}
		if now := describeFolder(t, dir); now != own {
			t.Errorf("the workspace was\n%s\nand is\n%s", own, now)
		}
		run(sandbox.Command{}, "file", "may")
		if now := describeFolder(t, dir); now == own {
			t.Error("in the workspace nothing has changed")
		}
	})
}

// tryChangingOpenFile tries to change a file that is open for reading only.
func tryChangingOpenFile(path string, may bool) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	fd := int(f.Fd())
	past := []unix.Timespec{{Sec: 1}, {Sec: 1}}
	for name, call := range map[string]func() error{
		"fchmod": func() error { return unix.Fchmod(fd, 0o604) },
		"futimens": func() error {
			_, _, failed := unix.Syscall6(unix.SYS_UTIMENSAT, uintptr(fd), 0, uintptr(unsafe.Pointer(&past[0])), 0, 0, 0)
			if failed != 0 {
				return failed
			}
			return nil
		},
	} {
		if err := call(); (err == nil) != may {
			return errors.New(fmt.Sprint(name, " gave ", err))
		}
	}
	if may {
		return nil
	}
	flags, err := unix.IoctlGetInt(fd, unix.FS_IOC_GETFLAGS)
	if err != nil {
		flags = 0
	}
	for name, call := range map[string]func() error{
		"fchown":    func() error { return unix.Fchown(fd, -1, os.Getgid()) },
		"fsetxattr": func() error { return unix.Fsetxattr(fd, "user.x", []byte("x"), 0) },
		"flags":     func() error { return unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, flags|0x40) }, // that it is not dumped
	} {
		if call() == nil {
			return errors.New(name + " worked")
		}
	}
	return nil
}
