package shellline

import (
	"strings"
	"testing"
)

func TestIsPlain(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"cat run.sh", "cat -n 'a b' \"c d\"", "cd sub && cat run.sh", "echo hello > out.txt", "echo 'a * b' >> out.txt 2>&1", "head -n 5 a | tail -2 | wc -l",
		"cp -p a b; mv b c || true", "grep -in 'a.*b' f.txt", "rm -f a b", "mkdir -p x/y", "cat <<'END'\n$(rm -rf x) *\nEND\n", "[ -f a ] && cat a", "> empty", "sort -k 2 a",
		"printf '%s\\n' x", "ls -la sub", "! test -e a", "cat - < a",
	} {
		if !IsPlain(line) {
			t.Errorf("%q names all that it reads", line)
		}
	}
	for _, line := range []string{
		"", "sh ./r*.sh", "F=run; sh $F.sh", "make", "python3 -c 'import mod'", "sh run.sh", ". ./run.sh", "./run.sh", "cat *.txt", "cat {a,b}", "cat ~/a", "cat a?", "cat [ab]",
		"cat $F", "cat \"$F\"", "cat $(ls)", "cat `ls`", "cat <(ls)", "LD_PRELOAD=./x.so cat a", "cat() { sh run.sh; }; cat a", "grep -r x", "grep -rn x .", "grep -f patterns x",
		"cp -r a b", "cp -a a b", "rm -rf x", "ls -R", "wc --files0-from=l", "md5sum -c sums", "sort --compress-program=./x a", "sort -o a b", "tee --append a", "git status", "sed -n 1p a",
		"awk 1 a", "find . -name x", "xargs cat < l", "tar xf a", "cat a &", "/workspace/cat a", "./cat a", "alias cat=sh; cat a", "cat a | sh", "(cat a)", "{ cat a; }", "if true; then cat a; fi",
		"for f in a b; do cat f; done", "cat <<END\n$(sh run.sh)\nEND\n", "cat a\\*", "cat $'a'", "eval cat a", "exec cat a", "env cat a", "nice cat a", "date -f dates", "cat \x00", "cat 'a",
		"chmod -R 700 a", "touch -r a b", "echo a >| b", "echo !(a)", strings.Repeat("cat a;", 20_000),
	} {
		if IsPlain(line) && line != "" {
			t.Errorf("%q may read more than it names", line)
		}
	}
	if !IsPlainCommand("cat", []string{"a*b", "$x"}) || IsPlainCommand("make", nil) || IsPlainCommand("cat", []string{"--files0-from=x"}) || IsPlainCommand("/bin/cat", []string{"a"}) {
		t.Error("a command without a shell is judged otherwise")
	}
}
