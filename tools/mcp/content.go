package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"parley/tools"
	"parley/tools/plainjson"
)

// Limits of what one call returns.
const (
	maxBlocks = 200
	maxFiles  = 20
)

// A block is one piece of a result, as the model reads it.
type block struct {
	Type        string `json:"type"` // text, image, audio, resource or resource_link
	Text        string `json:"text,omitempty"`
	Path        string `json:"path,omitempty"` // the file that holds the content
	MIME        string `json:"mime,omitempty"`
	URI         string `json:"uri,omitempty"`
	Name        string `json:"name,omitempty"`
	Description string `json:"description,omitempty"`
	Note        string `json:"note,omitempty"`
}

// A result is what a call returns to the model.
type result struct {
	Text       string  `json:"text,omitempty"`    // set if the result is a single text
	Content    []block `json:"content,omitempty"` // otherwise
	Structured any     `json:"structured,omitempty"`
}

// A reader converts the result of one call, as a server returns it, into what the model reads. It
// writes everything except text to files in the workspace.
type reader struct {
	*Servers
	call     tools.Call
	files    int
	pictures []tools.Picture
}

// toResult makes a result from a server's answer. A failure reported by the server becomes an
// error.
func (s *Servers) toResult(ctx context.Context, call tools.Call, one *server, answer *mcp.CallToolResult) (tools.Result, error) {
	r := &reader{Servers: s, call: call}
	var made result
	for i, c := range answer.Content {
		if i == maxBlocks {
			made.Content = append(made.Content, block{Type: "text", Note: fmt.Sprintf("%d more pieces are left out", len(answer.Content)-i)})
			break
		}
		b, err := r.block(ctx, c)
		if err != nil {
			return tools.Result{Untrusted: true}, err
		}
		made.Content = append(made.Content, b)
	}
	if answer.IsError {
		return untrustedError(tools.ExecutionFailed, "%s: %s", one.Name, tools.Clip(failureText(made.Content), 8<<10))
	}
	made.Structured = answer.StructuredContent
	made.dropRepeated()
	raw, err := plainjson.Marshal(made)
	if err != nil {
		return untrustedError(tools.ExecutionFailed, "the answer of the MCP server %s cannot be read: %v", one.Name, err)
	}
	field := ""
	if made.Text != "" && made.Structured == nil {
		field = "text"
	}
	return tools.Result{Content: raw, Untrusted: true, Pictures: r.pictures, Field: field}, nil
}

// failureText joins the texts in which a server reports a failure.
func failureText(all []block) string {
	var texts []string
	for _, b := range all {
		if b.Text != "" {
			texts = append(texts, b.Text)
		}
	}
	if len(texts) == 0 {
		return "it failed, and does not say why"
	}
	return strings.Join(texts, "\n")
}

// dropRepeated removes duplicates: servers repeat the structured form as text for clients that
// don't know it, or a text as the only field of a structured form.
func (r *result) dropRepeated() {
	texts, ok := plainTexts(r.Content)
	if !ok {
		return
	}
	if len(texts) == 1 {
		r.Text, r.Content = texts[0], nil
	}
	only := r.Structured
	if fields, ok := only.(map[string]any); ok && len(fields) == 1 {
		for _, only = range fields { // such as {"result": …}
		}
	}
	list, _ := only.([]any)
	switch {
	case r.Structured == nil:
	case len(texts) == 1 && only == any(texts[0]):
		r.Structured = nil // it is easier to read as text
	case len(texts) == 1 && (sameJSON(texts[0], r.Structured) || sameJSON(texts[0], only)):
		r.Text = ""
	case slices.EqualFunc(texts, list, func(text string, value any) bool { return value == any(text) || sameJSON(text, value) }):
		r.Text, r.Content = "", nil
	}
}

// plainTexts returns the texts of blocks; false if one of them is something else, or if there are
// none.
func plainTexts(all []block) (texts []string, ok bool) {
	for _, b := range all {
		if b != (block{Type: "text", Text: b.Text}) {
			return nil, false
		}
		texts = append(texts, b.Text)
	}
	return texts, len(texts) > 0
}

// sameJSON reports whether a text is the JSON of a value.
func sameJSON(text string, value any) bool {
	var read any
	return json.Unmarshal([]byte(text), &read) == nil && reflect.DeepEqual(read, value)
}

// block converts one piece of a server's answer.
func (r *reader) block(ctx context.Context, c mcp.Content) (block, error) {
	switch c := c.(type) {
	case *mcp.TextContent:
		return block{Type: "text", Text: c.Text}, nil
	case *mcp.ImageContent:
		return r.saveImage(ctx, c)
	case *mcp.AudioContent:
		return r.saveFile(ctx, block{Type: "audio", MIME: c.MIMEType}, c.Data)
	case *mcp.ResourceLink:
		return block{Type: "resource_link", URI: c.URI, Name: c.Name, Description: c.Description, MIME: c.MIMEType}, nil
	case *mcp.EmbeddedResource:
		if c.Resource == nil {
			break
		}
		b := block{Type: "resource", URI: c.Resource.URI, MIME: c.Resource.MIMEType, Text: c.Resource.Text}
		if len(c.Resource.Blob) == 0 {
			return b, nil
		}
		return r.saveFile(ctx, b, c.Resource.Blob)
	}
	return block{Type: "text", Note: "a piece of a kind that is not known here is left out"}, nil
}

// saveImage writes a picture to a file, and shows it to the model.
func (r *reader) saveImage(ctx context.Context, c *mcp.ImageContent) (block, error) {
	b, err := r.saveFile(ctx, block{Type: "image", MIME: c.MIMEType}, c.Data)
	if err != nil || b.Path == "" || r.cfg.PreparePicture == nil {
		return b, err
	}
	shown, err := r.cfg.PreparePicture(ctx, r.call, b.Path)
	if known, ok := errors.AsType[*tools.Error](err); ok {
		b.Note = known.Message
		return b, nil
	}
	if err != nil {
		return b, err
	}
	r.pictures = append(r.pictures, shown)
	return b, nil
}

// saveFile writes content to a file in the workspace. If it cannot, the block tells the model why.
func (r *reader) saveFile(ctx context.Context, b block, content []byte) (block, error) {
	if r.files++; r.files > maxFiles {
		b.Note = fmt.Sprintf("left out: more than %d files at once", maxFiles)
		return b, nil
	}
	name := fmt.Sprintf("%s-%d%s", r.call.ID, r.files, extension(b.MIME))
	path, err := r.cfg.SaveFile(ctx, r.call, name, content)
	switch {
	case ctx.Err() != nil:
		return b, ctx.Err()
	case err != nil:
		b.Note = "it could not be kept: " + err.Error()
		return b, nil
	}
	b.Path = path
	return b, nil
}

// extension returns the file name extension for a MIME type.
func extension(kind string) string {
	switch kind, _, _ := mime.ParseMediaType(kind); kind { // a type that cannot be parsed counts as unknown
	case "image/png":
		return ".png"
	case "image/jpeg":
		return ".jpg"
	case "image/gif":
		return ".gif"
	case "image/webp":
		return ".webp"
	case "audio/wav", "audio/x-wav":
		return ".wav"
	case "audio/mpeg":
		return ".mp3"
	case "application/pdf":
		return ".pdf"
	case "application/json":
		return ".json"
	}
	return ".bin"
}

// oneLine returns a text as one short line, for people who watch.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	return tools.Clip(strings.TrimSpace(text), 200)
}

// untrustedError returns an error for the model that may quote text from strangers, marked as such.
func untrustedError(code tools.Code, format string, args ...any) (tools.Result, error) {
	return tools.Result{Untrusted: true}, tools.Errorf(code, "%s", fmt.Sprintf(format, args...))
}
