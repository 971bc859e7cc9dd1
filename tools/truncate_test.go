package tools_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"parley/tools"
)

func truncateTo(t *testing.T, content string, most int) string {
	t.Helper()
	got, was := tools.Truncate(json.RawMessage(content), most, "out/1")
	if !was {
		t.Errorf("%d bytes were not cut to %d", len(content), most)
	}
	wantValid(t, got, most)
	return string(got)
}

// wantValid checks the properties that every result must have.
func wantValid(t *testing.T, got json.RawMessage, most int) {
	t.Helper()
	if !json.Valid(got) || !utf8.Valid(got) || len(got) > most {
		t.Errorf("%d bytes for at most %d, valid JSON %v, UTF-8 %v: %.200s", len(got), most, json.Valid(got), utf8.Valid(got), got)
	}
}

func TestTruncateLeavesShortResults(t *testing.T) {
	for _, content := range []string{`{"a": 1}`, `"x"`, `[1,2]`, `null`} {
		got, was := tools.Truncate(json.RawMessage(content), len(content), "")
		if was || string(got) != content {
			t.Errorf("%s became %s", content, got)
		}
	}
}

func TestTruncateText(t *testing.T) {
	got := truncateTo(t, `"`+strings.Repeat("ä", 1000)+`"`, 200)
	var text string
	if err := json.Unmarshal([]byte(got), &text); err != nil {
		t.Fatal(err)
	}
	body, note, _ := strings.Cut(text, "\n")
	if strings.Trim(body, "ä") != "" || len(got) < 190 {
		t.Errorf("cut in a character, or too much: %s", got)
	}
	if want := fmt.Sprintf("[cut: %d of 2000 bytes shown; the whole is in out/1", len(body)); !strings.HasPrefix(note, want) {
		t.Errorf("the note is %q, want %q", note, want)
	}
	for _, escape := range []string{`\n`, `\u00e4`, `\ud83d\ude00`, `\ud83d`, `\\`, `\"`} {
		for most := 150; most < 170; most++ {
			got := truncateTo(t, `"`+strings.Repeat(escape, 100)+`"`, most)
			body, _, _ := strings.Cut(got[1:], `\n[cut`)
			if strings.ReplaceAll(body, escape, "") != "" {
				t.Errorf("an escape was cut: %s", got)
			}
		}
	}
}

func TestTruncateArray(t *testing.T) {
	var items []string
	for i := range 1000 {
		items = append(items, fmt.Sprintf(`{"n": %d, "s": "],}\"["}`, i))
	}
	got := truncateTo(t, "[ "+strings.Join(items, " , ")+"]", 500)
	var list []map[string]any
	if err := json.Unmarshal([]byte(got), &list); err != nil {
		t.Fatal(err)
	}
	last := list[len(list)-1]
	if last["_truncated"] != true || last["total"] != 1000.0 || last["shown"] != float64(len(list)-1) || last["whole"] != "out/1" || len(list) < 10 {
		t.Errorf("the array became %s", got)
	}
	for i, item := range list[:len(list)-1] {
		if item["n"] != float64(i) || item["s"] != `],}"[` {
			t.Errorf("element %d became %v", i, item)
		}
	}
	if got := truncateTo(t, `["`+strings.Repeat("x", 1000)+`",1]`, 300); !strings.HasPrefix(got, `["xxx`) || !strings.Contains(got, `"shown":1,"total":2`) {
		t.Errorf("a long first element became %s", got)
	}
}

func TestTruncateKeepsImportantMembers(t *testing.T) {
	out := strings.Repeat("progress\\n", 10_000)
	got := truncateTo(t, `{"exit_code":1,"stdout":"begin`+out+`","stderr":"`+out+`panic: end","duration_ms":5}`, 2000)
	var r struct {
		ExitCode int `json:"exit_code"`
		Stdout   string
		Stderr   string
		Duration int `json:"duration_ms"`
	}
	if err := json.Unmarshal([]byte(got), &r); err != nil {
		t.Fatal(err)
	}
	if r.ExitCode != 1 || r.Duration != 5 || !strings.HasPrefix(r.Stdout, "begin") || !strings.HasSuffix(r.Stderr, "panic: end") {
		t.Errorf("the result became %s", got)
	}
	if !strings.HasPrefix(r.Stderr, "[cut: ") || len(r.Stdout) < 800 || len(r.Stderr) < 800 {
		t.Errorf("the room is badly shared: %d and %d bytes", len(r.Stdout), len(r.Stderr))
	}
	// One long member gets all the room.
	if got := truncateTo(t, `{"content":"`+out+`","a":1}`, 2000); len(got) < 1980 || !strings.HasSuffix(got, `,"a":1}`) {
		t.Errorf("%d of 2000 bytes are used: %.100s", len(got), got)
	}
	// An array in an object is cut as an array.
	if got := truncateTo(t, `{"entries":[`+strings.Repeat(`{"name":"x"},`, 1000)+`{}]}`, 500); !strings.Contains(got, `"total":1001`) {
		t.Errorf("the entries became %s", got)
	}
}

func TestTruncateTooManyParts(t *testing.T) {
	var b strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&b, `"k%d":%d,`, i, i)
	}
	got := truncateTo(t, `{`+b.String()+`"end":0}`, 400)
	var r map[string]string
	if err := json.Unmarshal([]byte(got), &r); err != nil || len(r) != 1 || !strings.HasPrefix(r["_truncated_json"], `{"k0":0,"k1":1`) {
		t.Errorf("the object became %s, %v", got, err)
	}
	if got := truncateTo(t, strings.Repeat("9", 1000), 200); !strings.HasPrefix(got, `{"_truncated_json":"999`) {
		t.Errorf("a long number became %s", got)
	}
	if got := truncateTo(t, strings.Repeat(`[`, 1000)+strings.Repeat(`]`, 1000), 600); !strings.Contains(got, "_truncated_json") {
		t.Errorf("a deep array became %s", got)
	}
}

func TestTruncateInvalidJSON(t *testing.T) {
	if got, was := tools.Truncate(json.RawMessage("plain \xff text"), 100, ""); was || string(got) != "\"plain \uFFFD text\"" {
		t.Errorf("text became %s, %v", got, was)
	}
	truncateTo(t, strings.Repeat("[", 100_000), 200)
	truncateTo(t, "\""+strings.Repeat("\xffx", 1000)+"\"", 200)
}

func TestTruncateIsQuick(t *testing.T) {
	const size = 4 << 20
	for name, content := range map[string]string{
		"text":    `"` + strings.Repeat("x", size) + `"`,
		"escapes": `"` + strings.Repeat(`\u0000`, size/6) + `"`,
		"array":   `[` + strings.Repeat("1,", size/2) + `1]`,
		"nested":  strings.Repeat(`{"a":[`, 1000) + strings.Repeat("1,", size/2) + `1` + strings.Repeat(`]}`, 1000),
		"members": `{"a":1` + strings.Repeat(`,"a":1`, size/6) + `}`,
		"no JSON": strings.Repeat("[", size),
	} {
		start := time.Now()
		truncateTo(t, content, 65_536)
		if took := time.Since(start); took > 10*time.Second { // whoever is quadratic takes minutes; the race detector and others run here too
			t.Errorf("%s: took %v", name, took)
		}
	}
}

func BenchmarkTruncate(b *testing.B) {
	content := json.RawMessage(`{"exit_code":0,"stdout":"` + strings.Repeat(`line\n`, 2<<20) + `"}`)
	b.SetBytes(int64(len(content)))
	for b.Loop() {
		tools.Truncate(content, 65_536, "out/1")
	}
}

func FuzzTruncate(f *testing.F) {
	for _, seed := range []string{`"äöü\n"`, `[1,[2,{"a":"b"}],"\ud83d\ude00"]`, `{"exit_code":1,"stderr":"xxxxxxxxxxxxxxx","stdout":"y"}`, "{", "1e5", `"\ud83d"`, "\xff"} {
		f.Add(seed, 10, "w")
		f.Add(strings.Repeat(seed, 20), 60, "")
		f.Add(`{"stderr":"`+strings.Repeat("ä", 99)+`","a":[`+strings.Repeat("1,", 99)+`1]}`, 120, "a\"b")
	}
	f.Fuzz(func(t *testing.T, content string, most int, where string) {
		if most < 2 || most > 1<<16 {
			return
		}
		got, was := tools.Truncate(json.RawMessage(content), most, where)
		wantValid(t, got, most)
		again, _ := tools.Truncate(json.RawMessage(strings.Clone(content)), most, where)
		if string(again) != string(got) {
			t.Errorf("two results for one content: %s and %s", got, again)
		}
		if once, cutAgain := tools.Truncate(got, most, where); cutAgain || string(once) != string(got) {
			t.Errorf("a result that fits is cut again: %s, was %v", once, was)
		}
	})
}

func TestMembersAreFoundInAnyObject(t *testing.T) {
	for content, want := range map[string]string{
		`{"path":"a\\","x":{"path":1},"query":["\"",2]}`:         `"a\\"`,
		"{ \"query\" : [ \"{\" ] ,\n \"path\" : { \"a\" : 1 } }": `{"a":1}`,
		`{"query":1}`: "", `"path"`: "", `["path","b"]`: "", "": "", "path": "", "{\"path\":": "", "{}": "", "\"\xff": "",
	} {
		if got := tools.Member(tools.AsJSON(json.RawMessage(content)), "path"); string(got) != want {
			t.Errorf("%s: it is %s, want %s", content, got, want)
		}
	}
}
