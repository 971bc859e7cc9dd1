package page

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"parley/agent/agenttest"
	"parley/cmd/parley/parleytest"
)

// An opened card of a call shows the pictures that the call has saved or looked at, also after a reload. A file that
// only has the name of a picture is not shown.
func TestCardsShowPictures(t *testing.T) {
	t.Parallel()
	s := newOffering(t)
	mcp.AddTool(s.Server, &mcp.Tool{Name: "draw", Description: "Draws."}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{
			&mcp.ImageContent{MIMEType: "image/png", Data: parleytest.Picture(t, 200)},
			&mcp.ImageContent{MIMEType: "image/png", Data: []byte(`<svg xmlns="http://www.w3.org/2000/svg" onload="window.hit=1"></svg>`)},
			&mcp.TextContent{Text: `{"path":"elsewhere.png"}`},
		}}, nil, nil
	})
	kept := regexp.MustCompile(`"path":"([^"]+-1\.png)"`)
	o, _ := newWorld(t, func(r agenttest.Request) agenttest.Response {
		var results []string // the results of the whole turn, because a picture comes as a separate message
		for _, m := range r.Messages() {
			if m.Role == "tool" {
				results = append(results, m.Content)
			}
		}
		found := kept.FindStringSubmatch(strings.Join(results, " "))
		switch {
		case len(results) == 0:
			return agenttest.Calls(agenttest.Call("offering__draw", `{}`))
		case len(results) == 1 && found != nil:
			return agenttest.Calls(agenttest.Call("image", fmt.Sprintf(`{"path":%q}`, found[1])))
		}
		return agenttest.Reply("I have drawn it")
	}, s.settings())
	parleytest.WaitFor(t, "the tools to be known", func() bool {
		return strings.Contains(o.Ask("GET", "/v1/mcp", "", o.OwnerHeader()...).Body, `"state":"up"`)
	})
	v := visit{enter(newBrowser(t), o, 1280, 800), o}
	look := func() {
		t.Helper()
		v.waitText(".answer", "I have drawn it")
		v.wait("both cards", "document.querySelectorAll('.call.ok').length === 2")
		if eval[bool](v.tab, "document.querySelector('.call .picture') !== null") {
			t.Error("a closed card has read its pictures")
		}
		eval[bool](v.tab, "(document.querySelectorAll('.call').forEach(c => { c.open = true }), true)")
		v.wait("the picture of each call", "[...document.querySelectorAll('.call')].every(c => c.querySelector('.picture img')?.naturalWidth === 8)")
		v.waitText(".call .picture [role=alert]", "isn't a picture")
		if alt := eval[string](v.tab, "document.querySelector('.picture img').alt"); !regexp.MustCompile(`^Picture .+-1\.png$`).MatchString(alt) {
			t.Errorf("its text is %q", alt)
		}
		if n := eval[int](v.tab, "document.querySelectorAll('.picture').length"); n != 3 || eval[bool](v.tab, "window.hit !== undefined") {
			t.Errorf("%d pictures are shown: %q", n, v.text(".call"))
		}
	}
	v.write(field, "draw")
	look()
	v.picture("cards-pictures")
	v.reload()
	look()
}
