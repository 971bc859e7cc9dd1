package api_test

import (
	"net/http"
	"strings"
	"testing"

	"parley/tools/plainjson"
)

func TestRender(t *testing.T) {
	x := newRig(t)
	render := func(token, markdown string) reply {
		body, err := plainjson.Marshal(map[string]string{"markdown": markdown})
		if err != nil {
			t.Fatal(err)
		}
		return x.do("POST", "/v1/render", token, string(body))
	}
	html := func(markdown string) string {
		return into[struct{ HTML string }](t, render(chatToken, markdown)).HTML
	}
	if got := html("# A\n\n**b** `c`"); got != "<h1>A</h1>\n<p><strong>b</strong> <code>c</code></p>" {
		t.Errorf("Markdown becomes %q", got)
	}
	for _, hostile := range []string{
		"<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "[x](javascript:alert(1))", "![x](http://evil.example/x.png)",
		"<a href=\"data:text/html,x\">x</a>", "```\"><script>alert(1)</script>\nx\n```",
	} {
		got := strings.ToLower(html(hostile))
		for _, bad := range []string{"<script", "<img", "href=\"javascript", "href=\"data", "src="} {
			if strings.Contains(strings.ReplaceAll(got, "&lt;img src=", ""), bad) {
				t.Errorf("%q becomes %q", hostile, got)
			}
		}
	}
	if got := html(""); got != "" {
		t.Errorf("nothing becomes %q", got)
	}
	for token, want := range map[string]int{"": http.StatusUnauthorized, ciToken: http.StatusForbidden, scrapeTok: http.StatusForbidden, readToken: http.StatusOK} {
		if r := render(token, "x"); r.StatusCode != want {
			t.Errorf("by %q: %d %s", token, r.StatusCode, r.body)
		}
	}
	if r := render(ownerToken, strings.Repeat("x", 257<<10)); r.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("a text that is too long: %d", r.StatusCode)
	}
	if r := x.do("POST", "/v1/render", ownerToken, `{"text": "x"}`); r.code() != "unknown_field" {
		t.Errorf("an unknown field: %d %s", r.StatusCode, r.body)
	}
}
