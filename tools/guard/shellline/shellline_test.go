package shellline

import (
	"runtime"
	"strings"
	"testing"
	"time"
)

// bypasses returns lines that a list of forbidden texts would let pass, each followed by a tab and the expected
// finding: denied, or opaque.
func bypasses() []string {
	return []string{
		"rm -r -f /\tdenied", "rm  -rf  /\tdenied", "rm -fr /\tdenied", "rm --recursive --force /\tdenied", `rm -rf "/"` + "\tdenied",
		`r''m -rf /` + "\tdenied", "sudo\tid\tdenied", "X=rm; $X -rf /\topaque", "$(echo cm0gLXJmIC8=|base64 -d)\topaque",
		`eval "r""m -rf /"` + "\tdenied", `bash -c 'rm -r''f /'` + "\tdenied", "find / -delete\tdenied",
		`python3 -c 'import shutil;shutil.rmtree("/")'` + "\topaque", `$'\x72\x6d' -rf /` + "\tdenied", "f(){ f|f& };f\tdenied",
		// Lines that a check of the parsed line once missed.
		"tee /dev/sda\tdenied", "cp /dev/zero /dev/sda\tdenied", "echo b >/proc/sysrq-trigger\tdenied", "cd / && rm -rf *\tdenied", "rm -rf /???\tdenied",
		// Similar lines.
		`\rm -rf /` + "\tdenied", "/bin/rm -rf /\tdenied", "rm -rf //\tdenied", "rm -rf /tmp/..\tdenied", "rm -rf /*\tdenied",
		"env rm -rf /\tdenied", "nohup nice -n 5 rm -rf / &\tdenied", "echo x; (rm -rf /)\tdenied", "echo `rm -rf /`\tdenied",
		"sh <<E\nrm -rf /\nE\tdenied", "echo cm0gLXJmIC8= | base64 -d | sh\topaque", "xargs rm -rf </tmp/list\topaque",
		"find / -exec rm -rf {} +\tdenied", "chmod -R 0777 /\tdenied", "dd of=/dev/sda if=/dev/zero\tdenied", "cat x > /dev/nvme0n1\tdenied",
		"mkfs.ext4 /dev/sda1\tdenied", "systemctl poweroff\tdenied", "bomb() { bomb | bomb & }; bomb\tdenied",
		"{rm,-rf,/}\topaque", "rm -rf ${NOTHING}/\topaque", "sh -c 'sh -c \"rm -rf /\"'\tdenied", "trap 'rm -rf /' EXIT\tdenied",
		"perl -e 'fork while 1'\topaque", "cd /dev; cat x > sda\tdenied", "RM -RF /\tdenied", "timeout -k 1 5 sudo id\tdenied",
		"bash <<< 'rm -rf /'\tdenied", "mv /* /dev/null\tdenied", "FORMAT c:\tdenied", "env -C / rm -rf *\tdenied", "exec -a x reboot\tdenied",
		"if true; then while :; do shutdown -h now; done; fi\tdenied", "busybox rm -rf /\tdenied", "rm -r --no-preserve-root /x\tdenied",
		"awk 'BEGIN{system(\"rm -rf /\")}'\topaque", "source ./x\topaque", "echo $((a[$(reboot)]))\tdenied", "[[ x > /dev/sda ]]\tdenied",
		"((rm -rf /))\tdenied",
		"flock /tmp/l -c 'rm -rf /'\tdenied", "flock /tmp/l --command 'rm -rf /'\tdenied", "flock -w 3 /tmp/l rm -rf /\tdenied", "flock -nw 3 /tmp/l -c 'reboot'\tdenied",
		"flock -w3 -- /tmp/l rm -rf /\tdenied", "flock --timeout 3 /tmp/l reboot\tdenied", "flock /tmp/l -c \"$X\"\topaque", "flock --time 3 /tmp/l reboot\tdenied",
	}
}

func TestBypassesAreCaught(t *testing.T) {
	all := bypasses()
	if len(all) < 39 {
		t.Errorf("there are %d lines, want at least 39", len(all))
	}
	for _, b := range all {
		at := strings.LastIndex(b, "\t")
		line, want := b[:at], b[at+1:]
		got := Parse(line)
		if want == "denied" && got.Denied == "" || want == "opaque" && got.Opaque == "" {
			t.Errorf("%q is %+v, want %s", line, got, want)
		}
	}
}

func TestBenignLinesPass(t *testing.T) {
	for _, line := range []string{
		"rm -rf /tmp/build", `git commit -m "fix reboot"`, `echo "sudo is not needed"`, "grep -rn shutdown .", "rm -rf ./build dist/*",
		"man sudo", "apt-cache show mkfs", "dd if=/dev/zero of=disk.img bs=1M count=1", "find . -name '*.o' -delete", "find /tmp/x -exec rm -rf {} +",
		"chmod 777 run.sh", "chmod -R u+w /tmp/x", "cat /dev/null > out.txt", "make 2>&1 | tee build.log", "cp -r /usr/share/dict .",
		"echo done > /dev/stderr", "for f in *.txt; do wc -l \"$f\"; done", "python3 -m pytest -q", "sh ./configure --prefix=/usr", "cd / && ls",
		"awk '{print $1}' access.log | sort | uniq -c", "f() { f2; }; f", "fact() { [ $1 -le 1 ] && echo 1 || fact $(($1-1)); }", "git log --format=%h -- init",
		"printf 'mkfs /dev/sda\\n' >> notes.md", "cat > run.sh <<'EOF'\nsudo reboot\nrm -rf /\nEOF", "mv a b", "rsync -a --delete src/ /tmp/dst/", "cd /tmp && rm -rf *",
		"ls -la /dev/sda", "init --help", "ssh-keygen -t ed25519 -f k", "docker build --format c: .", "test -w /dev/sda",
	} {
		if got := Parse(line); got.Denied != "" {
			t.Errorf("%q is denied: %s", line, got.Denied)
		}
	}
}

func TestPlainLinesAreNotOpaque(t *testing.T) {
	for _, line := range []string{
		"git push origin main", "go test ./... | tail -5", "for f in *.txt; do wc -l \"$f\"; done", "ls > out.txt 2>&1", "env A=b make -j4 && ./run.sh",
		"cat <<'EOF' > x\n$(reboot)\nEOF", "echo $HOME '$(x)' \"a b\"", "timeout 5 go build", "xargs -n1 echo < list", "",
	} {
		if got := Parse(line); got.Opaque != "" || got.Denied != "" {
			t.Errorf("%q is %+v", line, got)
		}
	}
	for _, line := range []string{
		"echo $(date)", "eval $X", "$X", "${A}b c", "diff <(ls) x", "alias ls=rm", ". ./env", "curl x | sh", "echo ${!x}", "echo ${x@P}", "a[1]=2", "if then",
		"l? -la", "echo $((1+2))", "\"git push\" x", "sh -c \"$X\"", "env -S 'a b'", "a\x00b", "python3 <<E\nprint(1)\nE",
	} {
		if got := Parse(line); got.Opaque == "" {
			t.Errorf("%q is not opaque: %+v", line, got)
		}
	}
}

func TestCommandsOfALine(t *testing.T) {
	for line, want := range map[string]string{
		"git push origin main":                   "git push origin main",
		"cd x && git  push 'a b'":                "cd x|git push a b",
		"A=1 git push":                           "A=1 git push (git push)",
		"/usr/bin/git push":                      "/usr/bin/git push (git push)",
		"git -C x -c a=b push o":                 "git -C x -c a=b push o (git push o)",
		"env FOO=1 timeout 5 git push":           "env FOO=1 timeout 5 git push|timeout 5 git push|git push",
		"sh -ec 'a; b' x":                        "sh -ec a; b x|a|b",
		"find . -name x -exec grep -n y {} \\;":  "find . -name x -exec grep -n y {} ;|grep -n y ?",
		"ls *.go $X":                             "ls ?.go ?",
		"echo a >b 2>/dev/null":                  "echo a > b",
		"> b":                                    "> b",
		"ls | xargs -n 1 rm":                     "ls|xargs -n 1 rm|rm ?",
		"echo $(date +%s)":                       "date +%s|echo ?",
		"if a; then b; else c; fi":               "a|b|c",
		"PATH=.":                                 "PATH=.",
		"export PATH=.:$PATH":                    "export PATH=.:?",
		"bash -c \"git $X\"":                     "bash -c git ?|git ?",
		"while read l; do echo \"$l\"; done < f": "read l|echo ?",
	} {
		var got []string
		for _, c := range Parse(line).Commands {
			text := c.Text
			if len(c.OtherTexts) > 0 {
				text += " (" + strings.Join(c.OtherTexts, ", ") + ")"
			}
			got = append(got, strings.ReplaceAll(text, Hole, "?"))
		}
		if all := strings.Join(got, "|"); all != want {
			t.Errorf("%q runs %s, want %s", line, all, want)
		}
	}
}

func TestArgumentsAreNotAShellLine(t *testing.T) {
	got := ParseArgs("echo", []string{"a; rm -rf /", "$(x)"})
	if got.Denied != "" || got.Opaque != "" || len(got.Commands) != 1 || got.Commands[0].Text != "echo a; rm -rf / $(x)" {
		t.Errorf("echo is %+v", got)
	}
	if got := ParseArgs("sh", []string{"-c", "rm -rf /"}); got.Denied == "" {
		t.Errorf("sh -c is %+v", got)
	}
	if got := ParseArgs("rm", []string{"-rf", "/*"}); got.Denied == "" {
		t.Errorf("rm is %+v", got)
	}
}

// Parsing a hostile line takes neither long nor much memory.
func TestHostileLinesAreBounded(t *testing.T) {
	const n = 60_000
	for name, line := range map[string]string{
		"parentheses": strings.Repeat("(", n), "substitutions": strings.Repeat("$(", n/2), "quoted": strings.Repeat(`"$(`, n/3), "arithmetic": "((" + strings.Repeat("(", n),
		"conditions": strings.Repeat("if ", n/3), "indices": strings.Repeat("a[", n/2), "pipes": strings.Repeat("a|", n/2) + "a", "and": strings.Repeat("a&&", n/3) + "a",
		"signs": "$((" + strings.Repeat("- ", n/2) + "1))", "choices": "$((" + strings.Repeat("1?", n/2), "here": strings.Repeat("a<<a;", n/5), "long": strings.Repeat("a", 10*n),
		"env": strings.Repeat("env ", n/4), "sh": strings.Repeat("sh -c ", n/6), "nested": strings.Repeat("sh -c '", 9) + "x", "many": strings.Repeat("sh -c a;", n/8),
		"eval": strings.Repeat("eval ", n/5) + "x", "braces": strings.Repeat("{ ", n/2), "just below": strings.Repeat("(", maxNesting-1), "mixed": strings.Repeat("(a[", maxNesting/3),
		"commands": strings.Repeat("a ;", n/3), "different": func() string {
			var b strings.Builder
			for i := range 9000 {
				b.WriteString("c" + strings.Repeat("x", i%50) + string(rune('a'+i%26)) + ";")
			}
			return b.String()[:n]
		}(),
	} {
		began := time.Now()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		done := make(chan Line)
		go func() { done <- Parse(line) }()
		select {
		case <-done:
		case <-time.After(20 * time.Second):
			t.Fatalf("%s: still at it", name)
		}
		runtime.ReadMemStats(&after)
		if took := after.StackInuse - before.StackInuse; after.StackInuse > before.StackInuse && took > 64<<20 {
			t.Errorf("%s: took %d MB of stack", name, took>>20)
		}
		t.Logf("%s: %s", name, time.Since(began).Round(time.Millisecond))
	}
}

func FuzzParse(f *testing.F) {
	for _, b := range bypasses() {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, line string) {
		got := Parse(line)
		for _, c := range got.Commands {
			if c.Text == "" {
				t.Errorf("%q has a command without text", line)
			}
		}
		ParseArgs(line, strings.Fields(line))
	})
}

func BenchmarkParse(b *testing.B) {
	for b.Loop() {
		Parse("cd build && cmake -DX=1 .. && make -j4 2>&1 | tee log")
	}
}
