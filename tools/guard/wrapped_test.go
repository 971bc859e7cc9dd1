package guard

import (
	"strings"
	"testing"

	"parley/tools"
)

// A command that runs another command is looked through, or a person is asked.
func TestADeniedCommandBehindOthers(t *testing.T) {
	g, err := New(Config{AllAgents: Policy{Deny: []string{"exec_shell(id *)", "spawn(id *)"}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"setpriv id", "setpriv --reuid 1000 --clear-groups id -u", "setpriv --reuid=1000 id", "prlimit id", "prlimit --nofile=10 id", "prlimit -o X id", "linux64 id", "linux32 id", "setarch x86_64 id", "setarch -R id", "x86_64 id",
		"start-stop-daemon --start --exec /usr/bin/id", "start-stop-daemon -S -x /usr/bin/id -- -u", "start-stop-daemon --start --startas id", "start-stop-daemon -Sa id --oknodo",
		"capsh -- -c id", "capsh --user=x -- -c 'id -u'", "capsh --shell=/usr/bin/id --", "dbus-run-session id", "dbus-run-session -- id", "dbus-run-session --config-file x id",
		"/lib64/ld-linux-x86-64.so.2 /usr/bin/id", "ld.so id", "/lib/ld-musl-x86_64.so.1 --preload x /usr/bin/id",
		"gdb -batch -ex 'shell id'", "gdb -x f", "vim -c '!id'", "vim -es '+!id' +q", "ex -c '!id'", "emacs --batch --eval '(shell-command \"id\")'", "less f", "sqlite3 x '.shell id'",
		"git -c alias.x='!id' x", "git -c core.pager=id log", "git -c core.sshCommand=id fetch", "git -c diff.external=id diff", "git x", "git bisect run id", "git submodule foreach id", "git submodule foreach 'id -u'", "git rebase -x id HEAD~2", "git rebase --exec=id", "git clone -c core.sshCommand=id a b", "git clone 'ext::id' x", "git fetch --upload-pack=id x", "git --config-env=alias.x=Y x", "GIT_SSH_COMMAND=id git fetch", "GIT_CONFIG_COUNT=1 git x", "GIT_PAGER=id git log",
		"sed e", "sed 1e f", "sed 'eid' f", "sed 's/x/id/e' f", "sed -n 's/x/id/gep' f", "sed -e p -e '1e id' f", "sed -f s f", "sed '/a/{p;e id\n}' f", "sed \"$X\" f", "sed --expression=e f", "sed -ne e f",
		"tar --checkpoint-action=exec=id -cf x y", "tar --checkpoint-action exec=id -cf x y", "tar -cf x --to-command=id", "tar -I id -cf x y", "tar --use-compress-program id -xf y", "tar --use-compress=id -xf y", "tar -F id -xf y",
		"xargs -I{} sh -c {}", "xargs -I % sh -c %", "xargs -i sh -c {}", "xargs --replace sh -c '{}'", "xargs -I{} {}", "echo a | xargs id", "xargs -I{} id {}", "echo id | xargs -I{} env {}",
		"PS4='$(id)' bash -xc :", "PS4='$(id)'; set -x; :", "export PS4='$(id)'", "env PS4='$(id)' bash -xc :", "X='$(id)'; echo ${X@P}", "echo ${X@P}", "test -v 'a[$(id)]'", "[[ -v 'a[$(id)]' ]]", "[ -v 'a[`id`]' ]", "printf -v 'a[$(id)]' x", "read 'a[$(id)]'", "unset 'a[$(id)]'", "declare 'a[$(id)]=1'", "let 'a[$(id)]'", "a='b[$(id)]'; echo $((a))", "a='b[$(id)]'; ((a))", "a='b[$(id)]'; echo ${x[a]}", "a='b[$(id)]'; echo ${x:a}", "a='b[$(id)]'; [[ a -eq 1 ]]", "a[$(id)]=1", "echo $((a[$(id)]))", "x='a[$(id)]'; echo ${!x}",
		"LESSOPEN='|id %s' less x", "PAGER=id man ls", "man -P id ls", "man --pager=id ls", "PROMPT_COMMAND=id bash -i", "BASH_ENV=x bash -c :", "LD_PRELOAD=x ls", "EDITOR=id crontab -e",
		"sort --compress-program=id -S 1 f", "split --filter=id f", "rsync -e id a b:", "rsync --rsh=id a b:", "scp -S id a b:", "ssh -o ProxyCommand=id x", "rg --pre id x", "go test -exec id ./...", "go vet -vettool=id ./...", "make SHELL=id", "make --eval='$(shell id)'", "gcc -wrapper id x.c", "nc -e id h 1", "ncat --exec id h 1", "socat - EXEC:id", "tmux new id", "zip -T -TT id x y",
		"unbuffer id", "xvfb-run -a id", "rlwrap -a x id", "tini -- id", "firejail --quiet id -u", "bwrap --ro-bind / / id", "systemd-run id", "runuser -u x -- id", "sg x 'id -u'", "somewrapper --then 'id -u'", "somewrapper --then='id -u'", "somewrapper /usr/bin/id", "somewrapper -x -y id", "perf stat id", "valgrind id", "numactl -N 0 id", "taskset -c 0 id", "taskset 1 id", "chrt -i 0 id", "chrt 5 id", "uclampset -m 1 id", "hyperfine 'id -u'", "npx id", "ssh h id", "coreutils --coreutils-prog=id", "parallel id", "script -c id x", "watch id", "entr id", "expect -c 'spawn id'", "csh -c id", "awk 'BEGIN{system(\"id\")}'",
	} {
		if got := g.Decide(t.Context(), shellCall(line)); got.Decision != tools.Deny && got.Decision != tools.Ask {
			t.Errorf("%q runs unasked", line)
		}
	}
	for _, line := range []string{
		"ls -l id", "echo id", "grep -rn id .", "cat id", "git commit -m 'show the id'", "git log --format=%h -- id", "git -c user.name=id commit -m x", "git diff id", "git -C x push", "rm id", "touch id", "jq .id x.json",
		"sed 's/a/b/g; s/c/d/2' f", "sed -n '10,20p' f", "sed -E 's|a/e|b|' f", "sed '/id/d' f", "sed -i 's/x/y/' f", "sed '1,3!d;$p' f", "tar -czf x.tgz id", "tar --checkpoint=100 -xf x", "sort -u id", "xargs -n1 echo < id",
		"go test ./...", "make id", "PAGER=cat git log", "FOO=bar ls", "for i in 1 2; do echo $i; done", "echo $((1+2))", "i=1; echo $((i+1))", "test -n \"$X\"", "[[ $X == y ]]", "printf '%s\\n' id", "read x", "export FOO=id", "python3 run.py", "npm run build", "cargo test", "pytest -k ids",
		"timeout 5 ls", "env A=b ls", "find . -name id", "curl -sS https://example.com/id", "awk '{print $1}' id", "apt-get install id", "head -c 3 id", "ffmpeg -i id.mp4 x.webm",
	} {
		if got := g.Decide(t.Context(), shellCall(line)); got.Decision != "" {
			t.Errorf("%q is %+v", line, got)
		}
	}
	if got := g.Decide(t.Context(), spawnCall("spawn", "setpriv", "--clear-groups", "id", "-u")); got.Decision != tools.Deny {
		t.Errorf("spawn of setpriv is %+v", got)
	}
}

// spawnCall returns a call of spawn.
func spawnCall(tool, command string, args ...string) tools.Call {
	c := newCall(tool)
	c.Args = []byte(`{"command":"` + command + `","args":["` + strings.Join(args, `","`) + `"]}`)
	return c
}

// An allow rule without a > matches no command that writes a file, even if it does so by an option.
func TestAllowedCommandsThatWriteByAnOption(t *testing.T) {
	g, err := New(Config{AllAgents: Policy{
		Allow: []string{"exec_shell(sort *)", "exec_shell(sed *)", "exec_shell(find *)", "exec_shell(curl *)", "exec_shell(uniq *)", "exec_shell(git *)", "exec_shell(awk *)", "exec_shell(tree *)", "exec_shell(shuf * > out.txt)", "exec_shell(xxd *)"},
		Deny:  []string{"exec_shell(sort -o secret *)"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]tools.Decision{
		"sort x": "", "sort -u -k 2 x": "", "sort -o y x": tools.Ask, "sort -oy x": tools.Ask, "sort -uo y x": tools.Ask, "sort x -o y": tools.Ask, "sort --output=y x": tools.Ask, "sort --out y x": tools.Ask, "sort -o secret x": tools.Deny,
		"sort -o /dev/null x": "", "shuf -o out.txt x": "", "shuf -o other.txt x": tools.Ask, "uniq a": "", "uniq -c a b": tools.Ask, "tree -o x": tools.Ask, "xxd a": "", "xxd a b": tools.Ask,
		"sed -n 5p x": "", "sed -i s/a/b/ x": tools.Ask, "sed --in-place=.bak s/a/b/ x": tools.Ask, "sed 'w y' x": tools.Ask, "sed 's/a/b/w y' x": tools.Ask, "sed -n '/a/w y' x": tools.Ask,
		"find . -name x": "", "find . -fprint y": tools.Ask, "find . -delete": tools.Ask, "curl https://a.org": "", "curl -o y https://a.org": tools.Ask, "curl -sLo y https://a.org": tools.Ask, "curl -O https://a.org/x": tools.Ask, "curl -so - https://a.org": "",
		"git log": "", "git log --output=y": tools.Ask, "git diff --output y": tools.Ask, "awk '{print $1}' x": "", "awk '{print > \"y\"}' x": tools.Ask,
	} {
		if got := g.Decide(t.Context(), shellCall(line)); got.Decision != want {
			t.Errorf("%q is %+v, want %q", line, got, want)
		}
	}
}
