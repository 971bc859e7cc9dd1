package canvas_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"parley/tools"
	"parley/tools/canvas"
	"parley/tools/toolstest"
)

func TestATable(t *testing.T) {
	c, kept := newCaller(nil)
	got := c.Want(t, "canvas", `{"title":"Sales <2030>","table":{"columns":["who","<b>much</b>"],"rows":[["a & b",1200],["<script>x</script>","3,5"]]}}`, "")
	var told struct{ Path, Picture, Title, Note string }
	if err := json.Unmarshal([]byte(got), &told); err != nil || told.Path != ".agent/canvas/call-1-sales_2030.html" || told.Picture != "" || !strings.Contains(told.Note, "with your answer") {
		t.Errorf("told %s, %v", got, err)
	}
	doc := kept.onlyFile(t, ".html")
	for _, want := range []string{"Sales &lt;2030&gt;</h1>", "&lt;b&gt;much", "a &amp; b", "&lt;script&gt;x", `class="number">1200`, "default-src &#39;none&#39;"} {
		if !strings.Contains(doc, want) {
			t.Errorf("the document lacks %q:\n%s", want, doc)
		}
	}
	if strings.Contains(doc, "<script>") || strings.Contains(doc, "script-src") {
		t.Errorf("the document may run scripts:\n%s", doc)
	}
	if name, ok := canvas.SentName(told.Path); !ok || name != "sales_2030.html" {
		t.Errorf("it is sent as %q", name)
	}
}

func TestPlots(t *testing.T) {
	for kind, drawn := range map[string]string{"line": "<path d=\"M", "bar": "<rect x=", "scatter": "<circle"} {
		for _, values := range []string{"[1,2,4]", "[0,0,0]", "[-5,1e9,3]", "[1e-9,2e-9,0]", "[1e299,-1e299,0]"} {
			c, kept := newCaller(nil)
			c.Want(t, "canvas", fmt.Sprintf(`{"plot":{"kind":%q,"x":["1","2","5"],"series":[{"name":"a<b","values":%s},{"name":"c","values":[3,2,1]}]}}`, kind, values), "")
			doc := kept.onlyFile(t, ".html")
			for _, want := range []string{drawn, "a&lt;b", "Numbers</summary>", `role="img"`, "text-anchor"} {
				if !strings.Contains(doc, want) {
					t.Errorf("%s of %s lacks %q", kind, values, want)
				}
			}
			for _, wrong := range []string{"NaN", "Inf", "ZgotmplZ", "%!"} {
				if strings.Contains(doc, wrong) {
					t.Errorf("%s of %s has %q:\n%s", kind, values, wrong, doc)
				}
			}
		}
	}
}

// Large numbers on an axis are abbreviated, and the drawing is as wide as its axis needs.
func TestTheAxisOfAPlot(t *testing.T) {
	for value, want := range map[string]string{"5000": ">5000<", "50000": ">50k<", "5000000": ">5M<", "5000000000": ">5B<", "-5e9": ">-5B<"} {
		c, kept := newCaller(nil)
		c.Want(t, "canvas", fmt.Sprintf(`{"plot":{"kind":"bar","x":["a"],"series":[{"name":"b","values":[%s]}]}}`, value), "")
		if doc := kept.onlyFile(t, ".html"); !strings.Contains(doc, want) || !strings.Contains(doc, `viewBox="0 0 760 310"`) {
			t.Errorf("of %s there is no %q in %s", value, want, doc)
		}
	}
}

// A plot of names has one point for each name at equal distances, and as many labels as there is room for.
func TestAPlotOfNames(t *testing.T) {
	c, kept := newCaller(nil)
	var names, values []string
	for i := range 60 {
		names, values = append(names, fmt.Sprintf("%q", fmt.Sprintf("day %d", i))), append(values, fmt.Sprint(i))
	}
	c.Want(t, "canvas", fmt.Sprintf(`{"plot":{"kind":"bar","x":[%s],"series":[{"name":"a","values":[%s]}]}}`, strings.Join(names, ","), strings.Join(values, ",")), "")
	doc := kept.onlyFile(t, ".html")
	if n := strings.Count(doc, `text-anchor="middle"`); n != 12 {
		t.Errorf("%d names are on the axis", n)
	}
	if n := strings.Count(doc, `<rect x=`); n != 60 {
		t.Errorf("%d bars are drawn", n)
	}
}

// Invalid or too large arguments are errors for the model, with the limits; nothing is stored.
func TestRefuses(t *testing.T) {
	c, kept := newCaller(nil)
	many := func(n int, one string) string { return strings.Repeat(one+",", n-1) + one }
	for _, call := range []struct{ args, want string }{
		{`{}`, "exactly one"},
		{`{"html":"x","table":{"columns":["a"],"rows":[["b"]]}}`, "exactly one"},
		{toolstest.Args("html", strings.Repeat("x", 1<<20+1)), "limit is 1048576"},
		{toolstest.Args("html", strings.Repeat("<div>", 1<<20)), "limit is 1048576"},
		{`{"html":"x","height":5000}`, "100 to 2000"},
		{toolstest.Args("html", "x", "title", strings.Repeat("x", 201)), "limit is 200"},
		{`{"table":{"columns":[],"rows":[["b"]]}}`, "1 to 50"},
		{`{"table":{"columns":["a"],"rows":[]}}`, "1 to 1000"},
		{`{"table":{"columns":["a"],"rows":[` + many(1001, `["x"]`) + `]}}`, "1 to 1000"},
		{`{"table":{"columns":[` + many(50, `"a"`) + `],"rows":[` + many(401, "["+many(50, `"x"`)+"]") + `]}}`, "limit is 20000"},
		{`{"table":{"columns":["a"],"rows":[["x"],["y","z"]]}}`, "row 2 has 2 cells"},
		{`{"table":{"columns":["a"],"rows":[["` + strings.Repeat("x", 2001) + `"]]}}`, "limit is 2000"},
		{`{"table":{"columns":["a"],"rows":[` + many(900, `["`+strings.Repeat("x", 1500)+`"]`) + `]}}`, "the document would have"},
		{`{"plot":{"kind":"pie","x":["1"],"series":[{"name":"a","values":[1]}]}}`, "line"},
		{`{"plot":{"kind":"line","x":["1","2"],"series":[{"name":"a","values":[1]}]}}`, "one for each"},
		{`{"plot":{"kind":"line","x":["1"],"series":[]}}`, "1 to 8"},
		{`{"plot":{"kind":"line","x":[` + many(2001, `"1"`) + `],"series":[{"name":"a","values":[1]}]}}`, "1 to 2000"},
		{`{"plot":{"kind":"scatter","x":["Monday"],"series":[{"name":"a","values":[1]}]}}`, "needs numbers"},
		{`{"plot":{"kind":"line","x":["1"],"series":[{"name":"a","values":[1e305]}]}}`, "too large"},
	} {
		c.WantError(t, "canvas", call.args, tools.InvalidArgs, call.want)
	}
	if len(kept) > 0 {
		t.Errorf("%d files are kept", len(kept))
	}
}

// After the model has read text that strangers may have written, active parts are removed from its HTML.
func TestScriptsAreRemovedAfterUntrustedText(t *testing.T) {
	const page = `<h1 onclick="x()">Hello</h1><script>steal()</script><p style="color:red">there</p>`
	for _, untrusted := range []bool{false, true} {
		c, kept := newCaller(nil)
		c.Call.Untrusted = untrusted
		got := c.Want(t, "canvas", toolstest.Args("html", page), "")
		doc := kept.onlyFile(t, ".html")
		if !strings.Contains(doc, "Hello") || !strings.Contains(doc, "color:red") || strings.Contains(doc, "steal()") == untrusted || strings.Contains(doc, "onclick") == untrusted || strings.Contains(doc, "script-src") == untrusted {
			t.Errorf("untrusted %v: %s", untrusted, doc)
		}
		if strings.Contains(got, "removed scripts") != untrusted {
			t.Errorf("untrusted %v: the model is told %s", untrusted, got)
		}
	}
	c, _ := newCaller(nil)
	c.Call.Untrusted = true
	c.WantError(t, "canvas", toolstest.Args("html", strings.Repeat("<div>", 10_000)), tools.InvalidArgs, "can't read html")
}

func TestShown(t *testing.T) {
	toolstest.New(canvas.New(nil, nil, nil)).Golden(t, "testdata/shown.json")
}
