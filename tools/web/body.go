package web

import (
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
)

// maxBody is the most that is read of an answer, decompressed, and the most that
// a model is shown of it.
const maxBody = 1 << 20

// A kind is what an answer's body is, as far as it matters here.
type kind int

const (
	isText kind = iota
	isPage
	isBinary
)

// An answer is what a server sent, as far as it was read.
type answer struct {
	from      *url.URL
	mediaType string
	declared  string // the content type with its parameters
	kind      kind
	content   []byte
	first     []byte // all that was read
	cut       bool   // the server would have sent more
}

// read reads the body of a response.
func read(response *http.Response) (answer, error) {
	content, err := io.ReadAll(io.LimitReader(response.Body, maxBody+1))
	if err != nil && len(content) <= maxBody {
		return answer{}, err
	}
	a := answer{from: response.Request.URL, declared: response.Header.Get("Content-Type"), content: content, first: content}
	if a.cut = len(content) > maxBody; a.cut {
		a.content = content[:maxBody]
	}
	if a.mediaType, _, err = mime.ParseMediaType(a.declared); err != nil || a.mediaType == "application/octet-stream" {
		a.declared = http.DetectContentType(a.content)
		if a.mediaType, _, err = mime.ParseMediaType(a.declared); err != nil {
			a.mediaType = "application/octet-stream"
		}
	}
	a.kind = kindOf(a.mediaType)
	return a, nil
}

func kindOf(mediaType string) kind {
	switch {
	case mediaType == "text/html", mediaType == "application/xhtml+xml":
		return isPage
	case strings.HasPrefix(mediaType, "text/"),
		strings.HasSuffix(mediaType, "+json"), strings.HasSuffix(mediaType, "+xml"), strings.HasSuffix(mediaType, "+yaml"),
		slices.Contains([]string{
			"application/json", "application/xml", "application/yaml", "application/x-yaml", "application/toml", "application/javascript",
			"application/x-javascript", "application/ecmascript", "application/x-ndjson", "application/jsonl", "application/x-sh",
			"application/sql", "application/graphql", "application/x-www-form-urlencoded",
		}, mediaType):
		return isText
	}
	return isBinary
}

// text decodes the content as its charset has it: what the header says, what a page
// says of itself, or what it looks like.
func (a answer) text() string {
	if _, params, err := mime.ParseMediaType(a.declared); err == nil && params["charset"] == "" && a.kind == isText && utf8.Valid(trimCut(a.content)) {
		return strings.TrimPrefix(string(trimCut(a.content)), "\uFEFF")
	}
	encoding, _, _ := charset.DetermineEncoding(a.content[:min(len(a.content), 1024)], a.declared)
	decoded, err := encoding.NewDecoder().Bytes(a.content)
	if err != nil {
		decoded = a.content
	}
	return strings.TrimPrefix(strings.ToValidUTF8(string(trimCut(decoded)), "\uFFFD"), "\uFEFF")
}

// trimCut leaves out a character that the end of what was read cuts in two.
func trimCut(content []byte) []byte {
	for i := 1; i <= min(3, len(content)); i++ {
		if r := content[len(content)-i:]; utf8.RuneStart(r[0]) {
			if !utf8.FullRune(r) {
				return content[:len(content)-i]
			}
			break
		}
	}
	return content
}

// whole is a text within the bounds, which says so where it is not the whole.
func (a answer) whole(text string) string {
	const suffix = "\n[cut: this is not all, what is beyond the first 1048576 bytes was not read]"
	if !a.cut && len(text) <= maxBody {
		return text
	}
	if most := maxBody - len(suffix); len(text) > most {
		text = string(trimCut([]byte(text[:most])))
	}
	return text + suffix
}

// aboutBinary is what stands for a body that is no text.
func (a answer) aboutBinary() string {
	if len(a.content) == 0 {
		return ""
	}
	size := fmt.Sprintf("%d bytes", len(a.content))
	if a.cut {
		size = "more than " + size
	}
	if a.mediaType == "application/pdf" {
		return "[a PDF document of " + size + ": its text cannot be read here; look for the same as a web page]"
	}
	return "[" + plain(clip(a.mediaType, 100)) + ", " + size + ": not a text, so not shown]"
}
