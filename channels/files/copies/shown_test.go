package copies_test

import (
	"slices"
	"strings"
	"testing"

	"parley/channels/files/copies"
)

func TestShown(t *testing.T) {
	for text, want := range map[string]string{
		"no image, [a link](a.png), a!b":                                                            "",
		"![chart](chart.png)":                                                                       "chart.png",
		"Here:\n\n- ![](charts/a.png) and ![b](b.pdf \"title\")\n":                                  "charts/a.png b.pdf",
		"![a](a.png) ![again](a.png)":                                                               "a.png",
		"![a](<my chart.png>) ![b](my%20other.png) ![c](100%.png)":                                  "my chart.png|my other.png|100%.png",
		"![a](/workspace/a.png) ![b](./b.png) ![c](../c.png)":                                       "/workspace/a.png ./b.png ../c.png",
		"![a](sandbox:/workspace/a.png) ![b](file:///workspace/b.png)":                              "/workspace/a.png /workspace/b.png",
		"![a](https://example.org/a.png) ![b](//x/b.png) ![c](#c) ![d](data:image/png;base64,AA==)": "",
		"`![a](a.png)`\n\n```\n![b](b.png)\n```\n\n    ![c](c.png)\n\n\\![d](d.png)":                "",
		"[![badge](badge.png)](https://example.org)":                                                "badge.png",
		"> ![q](q.png)\n\n| a |\n|---|\n| ![t](t.png) |":                                            "q.png t.png",
		"![a\\_b](a\\_b.png) ![x](x&amp;y.png)":                                                     "a_b.png x&y.png",
		"![unclosed](a.png":                                                                         "",
		"![ref][1]\n\n[1]: a.png":                                                                   "",
	} {
		sep := " "
		if strings.Contains(want, "|") {
			sep = "|"
		}
		wanted := strings.Split(want, sep)
		if want == "" {
			wanted = nil
		}
		if got := copies.ShownPaths(text); !slices.Equal(got, wanted) {
			t.Errorf("%q shows %q, want %q", text, got, wanted)
		}
	}
	if got := copies.ShownPaths(strings.Repeat("![a](a.png", 10_000)); len(got) > 1 {
		t.Errorf("%d are shown", len(got))
	}
}
