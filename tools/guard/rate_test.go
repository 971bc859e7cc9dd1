package guard

import (
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestRatesNameToolsAsRulesDo(t *testing.T) {
	g, err := New(Config{Rates: []string{"web_search 30/h", " web_*  100/d ", "docs__* 1/s", "* 5/m"}})
	if err != nil {
		t.Fatal(err)
	}
	for tool, want := range map[string]string{
		"web_search": "web_search 30 1h0m0s, web_* 100 24h0m0s, * 5 1m0s", "web_fetch": "web_* 100 24h0m0s, * 5 1m0s",
		"docs__find": "docs__* 1 1s, * 5 1m0s", "read_file": "* 5 1m0s",
	} {
		var got []string
		for _, r := range g.RatesOf(tool) {
			got = append(got, strings.Join([]string{r.Tools(), strconv.Itoa(r.MaxCalls), r.Period.String()}, " "))
		}
		if all := strings.Join(got, ", "); all != want {
			t.Errorf("%s is limited by %s; want %s", tool, all, want)
		}
	}
	if r, _ := ParseRate("web_sear 1/h"); r.UnknownTool([]string{"web_search"}) != "web_sear" || r.Period != time.Hour {
		t.Errorf("it names %q", r.UnknownTool([]string{"web_search"}))
	}
}

func TestBadRates(t *testing.T) {
	for text, want := range map[string]string{
		"":                   "write TOOL N/UNIT",
		"web_search":         "write TOOL N/UNIT",
		"web_search 30":      "write TOOL N/UNIT",
		"web_search 30/w":    "write TOOL N/UNIT",
		"web_search x/h":     `"x" isn't a number`,
		"web_search 0/h":     "at least 1 call",
		"web_search -1/h":    "at least 1 call",
		"web_search 1e9/h":   `"1e9" isn't a number`,
		"web_search 20000/h": "at most 10000",
		"web_fetch(x) 1/h":   "leave the parentheses out",
		"web.search 1/h":     "isn't a tool's name",
	} {
		if _, err := ParseRate(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %q", text, err, want)
		}
		if _, err := New(Config{Rates: []string{text}}); err == nil {
			t.Errorf("%q makes a guard", text)
		}
	}
}
