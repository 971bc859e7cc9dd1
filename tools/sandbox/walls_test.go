//go:build linux

package sandbox_test

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"parley/tools/sandbox"
)

// A command of one session looks for files of the other session, of the host, and of the program that runs it.
func TestSeesOnlyItsWorkspace(t *testing.T) {
	eachMode(t, func(t *testing.T, b *sandbox.Box) {
		root := t.TempDir()
		mine, other, home := filepath.Join(root, "mine"), filepath.Join(root, "other"), filepath.Join(root, "home")
		for _, dir := range []string{mine, other, home} {
			must(t, os.Mkdir(dir, 0o755))
			must(t, os.WriteFile(filepath.Join(dir, "file"), []byte("SECRET of "+dir), 0o644))
		}
		for _, line := range []string{
			`cat "$1/file"`, `ls "$1"`, `cp -r "$1" here`, `cat /proc/1/root"$1/file"`, `cd "$1" && cat file`,
			`ln -s "$1/file" soft && cat soft`, `ln "$1/file" hard && cat hard`, `exec 3<"$1/file" && cat <&3`, `find / -name file -path "*$1*" -exec cat {} +`,
		} {
			for _, dir := range []string{other, home} {
				if r := runShell(t, b, mine, line, dir); strings.Contains(r.Stdout+r.Stderr, "SECRET") || r.ExitCode == 0 && r.Stdout != "" {
					t.Errorf("%s in %s gave %q", line, dir, r.Stdout)
				}
			}
		}
		for _, path := range []string{"/etc/shadow", "/var/run/docker.sock", "/proc/1/environ", "/proc/kcore"} {
			if r := runShell(t, b, mine, `cat "$1" 2>/dev/null | head -c 20`, path); r.Stdout != "" && path != "/proc/1/environ" || strings.Contains(r.Stdout, "SECRET") {
				t.Errorf("%s gave %q", path, r.Stdout)
			}
		}
		for _, line := range []string{
			`echo evil >"$1/file"`, `echo evil >"$1/new"`, `rm -f "$1/file"`, `mv "$1/file" .`, `mkdir "$1/d"`, `chmod 777 "$1/file"`, `chmod 000 "$1"`,
			`touch -d 2001-01-01 "$1/file"`, `ln -s /etc "$1/link"`, `truncate -s 0 "$1/file"`, `cd "$1" && chmod 777 file`, `ln -s "$1/file" l; chmod 777 l`,
		} {
			before := describeFolder(t, other)
			runShell(t, b, mine, line, other)
			if after := describeFolder(t, other); after != before {
				t.Errorf("%s changed what is another session's:\n%s\n%s", line, before, after)
			}
		}
		if r := runShell(t, b, mine, `echo evil >/usr/evil || echo evil >/etc/evil || echo evil >/evil || echo evil >/dev/evil`); r.ExitCode == 0 {
			t.Error("it wrote to the system")
		}
	})
}

// describeFolder returns what can be seen of a folder and its file.
func describeFolder(t *testing.T, dir string) (seen string) {
	t.Helper()
	for _, path := range []string{dir, filepath.Join(dir, "file")} {
		info, err := os.Lstat(path)
		must(t, err)
		seen += info.Mode().String() + " " + info.ModTime().String() + " " + strconv.FormatInt(info.Size(), 10) + "\n"
	}
	entries, err := os.ReadDir(dir)
	must(t, err)
	return seen + strconv.Itoa(len(entries))
}

// In its own workspace, a command can do ordinary work.
func TestWorksInItsWorkspace(t *testing.T) {
	eachMode(t, func(t *testing.T, b *sandbox.Box) {
		workspace := t.TempDir()
		must(t, os.Mkdir(filepath.Join(workspace, "sub"), 0o755))
		r := runShell(t, b, workspace, `set -e
			printf '#!/bin/sh\necho ran' >run.sh; chmod +x run.sh; ./run.sh
			touch -d '2001-02-03 04:05:06' old; test old -ot run.sh; mv old sub/old; ln sub/old hard; ln -s run.sh soft; ./soft
			chmod 600 sub/old; cp -p sub/old copy; mkdir -p a/b/c; rm -r a; mkfifo pipe; rm pipe
			echo x >"$TMPDIR/t"; cat "$TMPDIR/t" >/dev/null; cat <<-EOF | sort
			b
			a
			EOF
			git init -q .; git config user.email a@b; git config user.name a; git add run.sh; git commit -qm one; git log --oneline | wc -l; git status --porcelain | wc -l`)
		if r.ExitCode != 0 || !strings.HasPrefix(r.Stdout, "ran\nran\na\nb\n1\n") {
			t.Errorf("it ended with %d: %s\n%s", r.ExitCode, r.Stdout, r.Stderr)
		}
		info, err := os.Stat(filepath.Join(workspace, "sub", "old"))
		must(t, err)
		if info.Mode().Perm() != 0o600 || info.ModTime().Year() != 2001 {
			t.Errorf("its file has mode %v and time %v", info.Mode(), info.ModTime())
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		var seen strings.Builder
		r, err = b.Run(ctx, sandbox.Command{
			Args: []string{"sh", "-c", `basename "$PWD"; cat; echo $X; echo err >&2; exit 3`}, Workspace: workspace, Dir: "sub", Stdin: strings.NewReader("in\n"), Env: []string{"X=x y"},
			Output: func(p []byte) { seen.Write(p) },
		})
		if err != nil || r.ExitCode != 3 || r.Stdout != "sub\nin\nx y\n" || r.Stderr != "err\n" || seen.Len() != len(r.Stdout+r.Stderr) {
			t.Errorf("it gave %+v, %v, told %q", r, err, seen.String())
		}
		if r, err = b.Run(ctx, sandbox.Command{Args: []string{"no-such-program"}, Workspace: workspace}); err != nil || r.ExitCode != 127 || !strings.Contains(r.Stderr, "not found") {
			t.Errorf("a program that there is not gave %+v, %v", r, err)
		}
		for _, what := range []string{"stream"} {
			if r := tryInside(t, b, workspace, what); r.ExitCode != 0 {
				t.Errorf("%s: %s", what, r.Stdout)
			}
		}
	})
}

func TestKnowsNoSecretOfItsProgram(t *testing.T) {
	t.Setenv("PARLEY_TEST_SECRET", "SECRET-of-the-worker")
	t.Setenv("PARLEY_TEST_TOLD", "told")
	change := func(c *sandbox.Config) { c.Env = []string{"PARLEY_TEST_TOLD", "PARLEY_TEST_UNSET"} }
	eachModeWith(t, change, func(t *testing.T, b *sandbox.Box) {
		r := runShell(t, b, t.TempDir(), `env; cat /proc/*/environ /proc/*/cmdline /proc/*/task/*/environ 2>/dev/null | tr '\0' '\n'`)
		if strings.Contains(r.Stdout, "SECRET") {
			t.Errorf("it found the secret: %s", r.Stdout)
		}
		if !strings.Contains(r.Stdout, "PARLEY_TEST_TOLD=told\n") || strings.Contains(r.Stdout, "UNSET") {
			t.Errorf("its environment is not as configured: %s", r.Stdout)
		}
		if r := runShell(t, b, t.TempDir(), `ls /proc/$PPID/fd /proc/self/fd 2>/dev/null; for fd in 3 4 5 6 7 8 9; do (eval "cat <&$fd") 2>/dev/null && echo open $fd; done`); strings.Contains(r.Stdout, "open") {
			t.Errorf("it has files of the program's: %s", r.Stdout)
		}
	})
}

// Commands of this program itself have no workspace, read much and write much.
func TestRunsItsOwnProgram(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	secret := filepath.Join(t.TempDir(), "secret")
	must(t, os.WriteFile(secret, []byte("SECRET"), 0o600))
	t.Setenv("PARLEY_TEST_TOLD", secret)
	t.Setenv("PARLEY_TEST_LISTENS", l.Addr().String())
	change := func(c *sandbox.Config) {
		c.Env, c.Read = []string{"PARLEY_TEST_TOLD", "PARLEY_TEST_LISTENS"}, nil
		c.Network = sandbox.Network{}
	}
	eachModeWith(t, change, func(t *testing.T, b *sandbox.Box) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		much := strings.Repeat("0123456789abcde\n", 1<<16)
		r, err := b.Run(ctx, sandbox.Command{OwnProgram: true, Args: []string{"attempt", "own"}, Stdin: strings.NewReader(much), MaxOutput: 4 << 20})
		if err != nil || r.ExitCode != 0 || r.Stdout != much+"done\n" {
			t.Errorf("it ended with %d (%s) and gave %d bytes, %.200s, %v: %s", r.ExitCode, r.Detail, len(r.Stdout), r.Stdout, err, r.Stderr)
		}
	})
	without := testConfig(sandbox.None)
	without.Network.Full = true
	b, err := sandbox.Open(t.Context(), without)
	must(t, err)
	r, err := b.Run(t.Context(), sandbox.Command{OwnProgram: true, Args: []string{"attempt", "stream"}})
	if err != nil || r.ExitCode != 0 || r.Stdout != "done\n" {
		t.Errorf("without walls it gave %+v, %v", r, err)
	}
}

func TestRunsItsOwnProgramThatWasReplaced(t *testing.T) {
	eachMode(t, func(t *testing.T, b *sandbox.Box) {
		raw, err := os.ReadFile(testProgram(t))
		must(t, err)
		program := filepath.Join(t.TempDir(), "program")
		must(t, os.WriteFile(program, raw, 0o755))
		must(t, os.Chmod(program, 0o755))
		if out, err := exec.CommandContext(t.Context(), program, "attempt", "replaced", string(b.Mode())).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
}

// While a command of one session runs, a command of another looks for it.
func TestSessionsAreSeparated(t *testing.T) {
	eachMode(t, func(t *testing.T, b *sandbox.Box) {
		victim, attacker := t.TempDir(), t.TempDir()
		started := make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			once := false
			_, err := b.Run(ctx, sandbox.Command{
				Args:      []string{"sh", "-c", `umask 0; echo SECRET >"$TMPDIR/secret-file"; echo SECRET >/dev/shm/secret-file 2>/dev/null; echo up; exec sleep 1000 #SECRET-argument`},
				Workspace: victim, Env: []string{"INSIDE=SECRET-variable"},
				Output: func([]byte) {
					if !once {
						once = true
						close(started)
					}
				},
			})
			ended <- err
		}()
		<-started
		var pid int
		waitFor(t, "the other command", func() bool {
			for _, p := range processesWith("sleep\x001000") {
				pid = p
			}
			return pid != 0
		})
		r := runShell(t, b, attacker, `for f in /proc/[0-9]*; do cat $f/cmdline $f/environ $f/root/tmp/secret-file $f/cwd/* 2>/dev/null; ls $f/fd 2>/dev/null; done | tr '\0' '\n' | grep -v secret-file
			ls -R /tmp /var/tmp /dev/shm "${TMPDIR%/*}" 2>/dev/null | grep secret; find / -name 'secret-file*' 2>/dev/null; cat /tmp/*/secret-file 2>/dev/null`)
		if strings.Contains(r.Stdout, "SECRET") || strings.Contains(r.Stdout, "secret") {
			t.Errorf("it found the other's: %s", r.Stdout)
		}
		for _, what := range []string{"signal", "limit", "trace"} {
			for _, target := range []int{pid, os.Getpid()} {
				if b.Mode() == sandbox.Bubblewrap {
					target += 100_000_000 // no such process exists inside; a small number could be the command's own
				}
				if r := tryInside(t, b, attacker, what, strconv.Itoa(target)); r.ExitCode != 9 {
					t.Errorf("%s of the other's process: %q", what, r.Stdout)
				}
			}
		}
		select {
		case err := <-ended:
			t.Fatalf("the other's command was ended: %v", err)
		default:
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("it ended with %v", err)
		}
	})
}

func TestReachesNoNetwork(t *testing.T) {
	dir := t.TempDir()
	tcp, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	defer tcp.Close()
	hits := make(chan string, 100)
	go func() {
		for {
			c, err := tcp.Accept()
			if err != nil {
				return
			}
			hits <- "tcp"
			c.Close()
		}
	}()
	packets := func(network, address string) string {
		c, err := (&net.ListenConfig{}).ListenPacket(t.Context(), network, address)
		must(t, err)
		t.Cleanup(func() { c.Close() })
		go func() {
			if _, _, err := c.ReadFrom(make([]byte, 10)); err == nil {
				hits <- network
			}
		}()
		return c.LocalAddr().String()
	}
	udp, path := packets("udp", "127.0.0.1:0"), packets("unixgram", filepath.Join(dir, "socket"))
	abstract := packets("unixgram", "@parley-test-"+strconv.Itoa(os.Getpid()))
	eachMode(t, func(t *testing.T, b *sandbox.Box) {
		for _, what := range [][]string{
			{"tcp", tcp.Addr().String()}, {"udp", udp}, {"unixgram", path}, {"unixgram", abstract}, {"pair", path}, {"pair", abstract}, {"vsock"}, {"ring"}, {"memfd"}, {"namespace"},
		} {
			if what[0] == "udp" && b.Mode() == sandbox.Bubblewrap {
				tryInside(t, b, dir, what...) // what is sent to nobody is sent
				continue
			}
			workspace := t.TempDir()
			if r := tryInside(t, b, workspace, what...); r.ExitCode != 9 {
				t.Errorf("%s: %q %q", what, r.Stdout, r.Stderr)
			}
		}
		if r := runShell(t, b, t.TempDir(), `cat /etc/resolv.conf; getent hosts example.com`); r.ExitCode == 0 {
			t.Errorf("it knows names: %s", r.Stdout)
		}
	})
	select {
	case hit := <-hits:
		t.Errorf("it reached %s", hit)
	default:
	}
}

// A program that an agent has configured for git runs inside the sandbox.
func TestGitRunsNothingOutside(t *testing.T) {
	eachMode(t, func(t *testing.T, b *sandbox.Box) {
		outside, workspace := t.TempDir(), t.TempDir()
		marker := filepath.Join(outside, "marker")
		r := runShell(t, b, workspace, `git init -q . && echo x >f && git add f
			printf '#!/bin/sh\ntouch "%s"; touch ran\n' "$1" >evil.sh; chmod +x evil.sh
			git config core.fsmonitor ./evil.sh; git config diff.x.textconv ./evil.sh; git config filter.x.clean ./evil.sh; git config core.hooksPath hooks
			echo '* diff=x filter=x' >.gitattributes; mkdir -p hooks; cp evil.sh hooks/pre-commit
			git config user.email a@b; git config user.name a
			git status; git diff --cached; git commit -m x; ls ran`, marker)
		if !strings.HasSuffix(r.Stdout, "ran\n") {
			t.Errorf("git ran nothing, so nothing is shown: %s %s", r.Stdout, r.Stderr)
		}
		if _, err := os.Lstat(marker); err == nil {
			t.Error("git ran it outside")
		}
	})
}
