package excerpt

import (
	"encoding/json"
	"html"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

func TestNobodyHidesLetters(t *testing.T) {
	t.Parallel()
	raw := json.RawMessage("{\"command\":\"ls \u202e\U000e0041x\"}")
	if got, want := string(EscapeHidden(raw)), `{"command":"ls \u202e\udb40\udc41x"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	var read struct{ Command string }
	if err := json.Unmarshal(EscapeHidden(raw), &read); err != nil || read.Command != "ls \u202e\U000e0041x" {
		t.Errorf("it reads as %q, %v", read.Command, err)
	}
}

// Each of these looks like nothing, like a blank, or like something else.
func TestEveryHiddenCharacterIsShown(t *testing.T) {
	t.Parallel()
	hidden := []rune{
		0x7f, 0x80, 0x85, 0x9f, 0xa0, 0xad, 0x34f, 0x61c, 0x115f, 0x1160, 0x1680, 0x17b4, 0x17b5, 0x180b, 0x180d, 0x180e, 0x180f,
		0x2000, 0x200a, 0x200b, 0x200c, 0x200d, 0x200e, 0x200f, 0x2028, 0x2029, 0x202a, 0x202e, 0x202f, 0x205f, 0x2060, 0x2064, 0x2065, 0x2066, 0x2069, 0x206f,
		0x2800, 0x3000, 0x3164, 0xe000, 0xfe00, 0xfe0f, 0xfeff, 0xffa0, 0xfff0, 0xfff8, 0xfff9, 0xfffb, 0xfffc, 0xffff,
		0x16fe4, 0x1bca0, 0x1d159 + 26, 0xe0000, 0xe0001, 0xe0020, 0xe007f, 0xe0100, 0xe01ef, 0xe0fff, 0xf0000, 0x10ffff,
	}
	for _, r := range hidden {
		raw, err := json.Marshal("a" + string(r) + "b")
		if err != nil {
			t.Fatal(err)
		}
		got := string(EscapeHidden(raw))
		var read string
		if err := json.Unmarshal([]byte(got), &read); err != nil || read != "a"+string(r)+"b" || strings.ContainsRune(got, r) || !strings.HasPrefix(got, `"a\u`) {
			t.Errorf("U+%04X is shown as %s and reads as %q, %v", r, got, read, err)
		}
		if got := ShowHidden("a" + string(r)); strings.ContainsRune(got, r) || !strings.HasPrefix(strings.ToLower(got), `a\u`) {
			t.Errorf("U+%04X is shown in a text as %q", r, got)
		}
	}
	const seen = "Für Čeština, 日本語, हिन्दी, עברית, \u00e9e\u0301, 👍 — «…» \u2010"
	if got := string(EscapeHidden(json.RawMessage(`"` + seen + `"`))); got != `"`+seen+`"` {
		t.Errorf("what can be read became %s", got)
	}
	if got := ShowHidden(seen + "\n\tx\r"); got != seen+"\n\tx\\u000d" {
		t.Errorf("what can be read became %q", got)
	}
	if got := string(EscapeHidden(json.RawMessage("{\n\"a\": \"\u200b\"\r\n}"))); got != `{"a":"\u200b"}` {
		t.Errorf("line ends between texts became %s", got)
	}
}

func TestNoQuotationEndsEarly(t *testing.T) {
	t.Parallel()
	if got := (Call{Arguments: json.RawMessage("\"```\\n\"")}).Markdown(); !strings.HasPrefix(got, "````\n") || !strings.HasSuffix(got, "\n````") {
		t.Errorf("the fence can be closed from inside: %s", got)
	}
	long := strings.Repeat("é", maxOfCall)
	if got := BeginningAndEnd(long); !IsLong(long) || !strings.Contains(got, "… 1600 bytes are left out here …") || strings.Count(got, "é") != 600 {
		t.Errorf("of a long call is shown %s", got)
	}
	if got := Reason("no\n" + strings.Repeat("é", maxOfReason)); !strings.HasPrefix(got, "> no\n> é") || !strings.HasSuffix(got, "é …") {
		t.Errorf("got %q", got)
	}
	if got := Inline("a`b\u3164\n"); got != "a'b\\u3164\\n" {
		t.Errorf("got %q", got)
	}
}

// People see what a call would do as it would do it, and every argument of which that says nothing. No text
// can look like another argument, or hide one.
func TestACallIsShownWhole(t *testing.T) {
	t.Parallel()
	raw := json.RawMessage(`{"command":"git push","timeout":60,"note":"a\n` + "```" + `\ntimeout: 1","odd\u200b":"x\u202ey","list":["a",1],"empty":""}`)
	c := Call{Shown: "git push", Of: []string{"command"}, Arguments: raw}
	want := "```\ngit push\n```\n\nempty:\n\n```\n\n```\n\nlist: `[\"a\",1]`\n\nnote:\n\n````\na\n```\ntimeout: 1\n````\n\nodd&#92;u200b: `x\\u202ey`\n\ntimeout: `60`"
	if got := c.Markdown(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := (Call{Of: []string{"command"}, Arguments: json.RawMessage(`{"command":"ls"}`)}).Markdown(); got != "command: `ls`" {
		t.Errorf("without a picture of the call, %s is shown", got)
	}
	if got := (Call{Arguments: json.RawMessage(`{}`)}).Markdown(); got != "```\n{}\n```" {
		t.Errorf("of no arguments is shown %s", got)
	}
	twice := `{"command":"ls","command":"rm -r ."}`
	if got := (Call{Shown: "rm -r .", Of: []string{"command"}, Arguments: json.RawMessage(twice)}).Markdown(); got != "```\n"+twice+"\n```" {
		t.Errorf("of an argument that stands there twice is shown %s", got)
	}
	file := c.File()
	for _, part := range []string{"  | git push\n", `"timeout": 60`, `\u202e`, "  | ```\n  | timeout: 1\n"} {
		if !strings.Contains(file, part) {
			t.Errorf("the file lacks %q:\n%s", part, file)
		}
	}
}

func TestWordsHaveNoMarkup(t *testing.T) {
	t.Parallel()
	const text = "it would fetch https://evil.example/a_b_c?x=1&amp;y)** **Approved** ![ok](x) `rm`\n\n# all\u3164 right, :tada: 1.5 kB"
	const want = "it would fetch https://evil.example/a_b_c?x=1&amp;y)** **Approved** ![ok](x) `rm` # all\\u3164 right, :tada: 1.5 kB"
	got := Words(text)
	if html.UnescapeString(got) != want {
		t.Errorf("%q reads as %q", got, html.UnescapeString(got))
	}
	if plain := regexp.MustCompile(`&#\d+;`).ReplaceAllString(got, ""); strings.ContainsAny(plain, "\\`*_[]<>~|#!&$:\n") {
		t.Errorf("there is markup in %q", plain)
	}
}

// Whatever bytes a long call has, its ends stand in it, and what is left out is counted.
func FuzzEnds(f *testing.F) {
	for _, raw := range []string{
		strings.Repeat("\xff", maxOfCall+1), strings.Repeat("\xff", maxOfCall) + strings.Repeat("x", headOfCall),
		strings.Repeat("é", maxOfCall), "x" + strings.Repeat("é", maxOfCall), strings.Repeat("`", maxOfCall+1),
	} {
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		text, got := strings.ToValidUTF8(string(raw), "\uFFFD"), BeginningAndEnd(string(raw))
		between := regexp.MustCompile("\n\n… (\\d+) bytes are left out here …\n\n").FindStringSubmatchIndex(got)
		if between == nil {
			t.Fatalf("%q is shown as %q", raw, got)
		}
		inner := func(block string) string {
			_, block, _ = strings.Cut(block, "\n")
			return block[:strings.LastIndex(block, "\n")]
		}
		head := inner(got[:between[0]])
		tail := inner(got[between[1]:])
		if !strings.HasPrefix(text, head) || !strings.HasSuffix(text, tail) || got[between[2]:between[3]] != strconv.Itoa(len(text)-len(head)-len(tail)) {
			t.Errorf("%q is shown as %q", raw, got)
		}
	})
}
