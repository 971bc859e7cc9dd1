//go:build linux

package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// serveExample runs a server made with the SDK, as a program of its own. word is in the description of its first tool.
func serveExample(word string) error {
	fmt.Println("Welcome to the example server!") // which is not a message
	return newServer(word).Run(context.Background(), &mcp.StdioTransport{})
}

func newServer(word string) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "example", Version: "1"}, nil)
	type none struct{}
	type said struct {
		Text    string  `json:"text,omitempty"`
		Timeout float64 `json:"timeout,omitempty"`
	}
	text := func(t string) *mcp.CallToolResult {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: t}}}
	}
	readOnly := &mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true}
	mcp.AddTool(s, &mcp.Tool{Name: "echo", Description: "Says it again, " + word + ".", Annotations: readOnly}, func(_ context.Context, _ *mcp.CallToolRequest, a said) (*mcp.CallToolResult, any, error) {
		return text(a.Text), nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "pid"}, func(context.Context, *mcp.CallToolRequest, none) (*mcp.CallToolResult, any, error) {
		return text(strconv.Itoa(os.Getpid())), nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "ask"}, func(_ context.Context, r *mcp.CallToolRequest, form map[string]any) (*mcp.CallToolResult, any, error) {
		if r.Params.InputResponses == nil {
			return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"which": &mcp.ElicitParams{Message: "which?", RequestedSchema: form}}}, nil, nil
		}
		answer, ok := r.Params.InputResponses["which"].(*mcp.ElicitResult)
		if !ok {
			return nil, nil, errors.New("nobody has answered")
		}
		raw, err := json.Marshal(answer.Content)
		return text(answer.Action + " " + string(raw)), nil, err
	})
	mcp.AddTool(s, &mcp.Tool{Name: "headers"}, func(_ context.Context, r *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, any, error) {
		return text("asked with " + r.Extra.Header.Get("Authorization")), nil, nil
	})
	type tagged struct {
		HTML string `json:"html" jsonschema:"such as <p>a & b</p>"`
	}
	mcp.AddTool(s, &mcp.Tool{Name: "tag", Description: "Takes <p> & more."}, func(_ context.Context, _ *mcp.CallToolRequest, a tagged) (*mcp.CallToolResult, any, error) {
		return text(a.HTML), nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "fail"}, func(context.Context, *mcp.CallToolRequest, none) (*mcp.CallToolResult, any, error) {
		return nil, nil, errors.New("the printer is on fire")
	})
	mcp.AddTool(s, &mcp.Tool{Name: "sum"}, func(context.Context, *mcp.CallToolRequest, none) (*mcp.CallToolResult, map[string]int, error) {
		return nil, map[string]int{"sum": 42}, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "look.around"}, func(context.Context, *mcp.CallToolRequest, none) (*mcp.CallToolResult, any, error) {
		dir, err := os.Getwd()
		_, outside := os.ReadFile("/etc/shadow")
		wrote := os.WriteFile("written", []byte("x"), 0o600)
		return text(fmt.Sprint(dir, "|", os.Getenv("GIVEN"), "|", os.Getenv("HOST_SECRET"), "|", outside != nil, "|", wrote == nil)), nil, err
	})
	mcp.AddTool(s, &mcp.Tool{Name: "pieces"}, func(context.Context, *mcp.CallToolRequest, none) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{
			&mcp.TextContent{Text: "see"},
			&mcp.ImageContent{MIMEType: "image/png", Data: []byte("a picture")},
			&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "x://a", MIMEType: "text/plain", Text: "words"}},
			&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "x://b", MIMEType: "application/pdf", Blob: []byte("%PDF")}},
			&mcp.ResourceLink{URI: "x://c", Name: "c"},
		}}, nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "wait"}, func(ctx context.Context, r *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, any, error) {
		if token := r.Params.GetProgressToken(); token != nil {
			if err := r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: 1, Total: 3, Message: "one\nof three"}); err != nil {
				return nil, nil, err
			}
		}
		if err := os.WriteFile("waiting", nil, 0o600); err != nil {
			return nil, nil, err
		}
		<-ctx.Done()
		return nil, nil, os.WriteFile("cancelled", nil, 0o600)
	})
	mcp.AddTool(s, &mcp.Tool{Name: "die"}, func(context.Context, *mcp.CallToolRequest, none) (*mcp.CallToolResult, any, error) {
		fmt.Fprintln(os.Stderr, "killed on purpose")
		return nil, nil, syscall.Kill(os.Getpid(), syscall.SIGKILL)
	})
	mcp.AddTool(s, &mcp.Tool{Name: "grow"}, func(context.Context, *mcp.CallToolRequest, none) (*mcp.CallToolResult, any, error) {
		s.AddTool(&mcp.Tool{Name: "grown", InputSchema: map[string]any{"type": "object"}}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return text("grown"), nil
		})
		return text("done"), nil, nil
	})
	return s
}

// serveHostile runs a server that breaks the protocol in the given way.
func serveHostile(how string) error {
	if how == "deaf" {
		if err := exec.Command("setsid", "sh", "-c", `trap "" TERM HUP; while :; do sleep 0.05; done # `+os.Args[len(os.Args)-1]).Start(); err != nil {
			return err
		}
		select {}
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				Cursor, Name string
			} `json:"params"`
		}
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			return err
		}
		say := func(format string, args ...any) { fmt.Printf(format+"\n", args...) }
		answer := func(result string) { say(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result) }
		switch {
		case m.Method == "server/discover" && how == "old":
		case m.Method == "server/discover":
			say(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`, m.ID)
		case m.Method == "initialize":
			answer(`{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"x","version":"1"}}`)
		case m.Method == "tools/list":
			answer(hostileListing(how, m.Params.Cursor))
		case m.Method == "tools/call":
			misbehave(m.Params.Name, string(m.ID), say)
		}
	}
	return nil
}

// hostileListing returns a hostile server's answer to a request for its tools.
func hostileListing(how, cursor string) string {
	tool := func(name, schema string) string { return fmt.Sprintf(`{"name":%q,"inputSchema":%s}`, name, schema) }
	const object = `{"type":"object"}`
	switch how {
	case "pages":
		n, _ := strconv.Atoi(cursor)
		return fmt.Sprintf(`{"tools":[%s],"nextCursor":"%d"}`, tool(fmt.Sprint("t", n), object), n+1)
	case "circle":
		return fmt.Sprintf(`{"tools":[%s],"nextCursor":"again"}`, tool("t", object))
	case "names":
		long := strings.Repeat("n", 190)
		return `{"tools":[` + strings.Join([]string{
			tool("a.b", object), tool("a/b", object), tool("a_b", object), tool("twice", object), tool("twice", `{"type":"object","properties":{"x":{}}}`),
			tool(long+"1", object), tool(long+"2", object), tool(strings.Repeat("n", 300), object), tool("", object), tool("größe", object),
		}, ",") + `]}`
	case "deep":
		return `{"tools":[` + tool("deep", `{"type":"object","properties":{"x":`+strings.Repeat(`{"items":`, 3000)+"{}"+strings.Repeat("}", 3000)+`}}`) + `]}`
	case "schemas":
		deep := strings.Repeat(`{"items":`, 90) + "{}" + strings.Repeat("}", 90)
		return `{"tools":[` + strings.Join([]string{
			tool("circular", `{"type":"object","$ref":"#"}`), tool("recursive", `{"type":"object","properties":{"child":{"$ref":"#"}}}`),
			tool("deep", `{"type":"object","properties":{"x":`+deep+`}}`), tool("list", `[]`), tool("elsewhere", `{"$ref":"http://127.0.0.1:1/schema"}`), tool("good", object),
		}, ",") + `]}`
	}
	var all []string
	for _, name := range []string{"say", "noise", "long", "strange", "nothing", "news", "ask", "silence", "requests", "logs", "endless", "answers", "twice"} {
		all = append(all, tool(name, object))
	}
	return `{"tools":[` + strings.Join(all, ",") + `]}`
}

// misbehave answers a call of a hostile server.
func misbehave(name, id string, say func(string, ...any)) {
	const good = `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"fine"}]}}`
	switch name {
	case "noise":
		say("warning: something\n%s", strings.Repeat("-", 200_000))
		say(`{"jsonrpc":"2.0","id":99999,"result":{}}`)
		say(`{"id":`)
		say(good, id)
	case "long":
		say(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"%s"}]}}`, id, strings.Repeat("x", 9<<20))
	case "strange":
		say(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"hologram","beam":1}]}}`, id)
	case "nothing":
		say(`{"jsonrpc":"2.0","id":%s,"result":null}`, id)
	case "news":
		for range 6000 {
			say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		}
		say(good, id)
	case "ask": // asks with a recursive schema as the form: nobody is asked
		say(`{"jsonrpc":"2.0","id":"e1","method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{"x":{"$ref":"#"}},"$ref":"#"}}}`)
		say(good, id)
	case "silence":
	case "requests": // and reads no answers
		for n := range 50_000 {
			say(`{"jsonrpc":"2.0","id":"r%d","method":"sampling/createMessage","params":{"messages":[{"role":"user","content":{"type":"text","text":"%0200d"}}],"maxTokens":10}}`, n, n)
		}
		say(good, id)
	case "logs":
		for range 300 {
			say(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":"%0100000d"}}`, 0)
			fmt.Fprintln(os.Stderr, strings.Repeat("e", 10_000))
		}
		say(good, id)
	case "endless":
		for {
			say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"x","progress":1}}`)
		}
	case "answers": // to requests that nobody has made
		for {
			say(`{"jsonrpc":"2.0","id":999999,"result":{}}`)
		}
	case "twice":
		say(good, id)
		say(strings.Replace(good, "fine", "again", 1), id)
	default:
		say(good, id)
	}
}

// serveHTTP returns the service, which requires a header.
func serveHTTP(word string) http.Handler {
	s := newServer(word)
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Key") != "sesame" {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// waited reports whether a file appears within a few seconds.
func waited(path string) bool {
	for until := time.Now().Add(20 * time.Second); time.Now().Before(until); <-time.After(5 * time.Millisecond) {
		if _, err := os.Stat(path); err == nil {
			return true
		}
	}
	return false
}
