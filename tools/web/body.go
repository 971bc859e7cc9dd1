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

// maxBody limits how many bytes of an answer are read, after decompression, and how many of them a
// model is shown. More may be read of a document.
const maxBody = 1 << 20

// A kind says what an answer's body is, to the extent that it matters here.
type kind int

const (
	isText kind = iota
	isPage
	isBinary
)

// An answer is a server's response, as far as it was read.
type answer struct {
	from        *url.URL
	mediaType   string
	contentType string // the content type with its parameters
	kind        kind
	content     []byte
	head        []byte // all bytes read so far, including those beyond maxBody
	truncated   bool   // the server would have sent more
}

// readAnswer reads the body of a response, up to maxBody bytes. If the connection breaks before that, it returns an
// error.
func readAnswer(response *http.Response) (answer, error) {
	content, err := io.ReadAll(io.LimitReader(response.Body, maxBody+1))
	if err != nil && len(content) <= maxBody {
		return answer{}, err
	}
	a := answer{from: response.Request.URL, contentType: response.Header.Get("Content-Type"), content: content, head: content}
	if a.truncated = len(content) > maxBody; a.truncated {
		a.content = content[:maxBody]
	}
	if a.mediaType, _, err = mime.ParseMediaType(a.contentType); err != nil || a.mediaType == "application/octet-stream" {
		a.contentType = http.DetectContentType(a.content)
		if a.mediaType, _, err = mime.ParseMediaType(a.contentType); err != nil {
			a.mediaType = "application/octet-stream"
		}
	}
	a.kind = kindOf(a.mediaType)
	return a, nil
}

// kindOf returns the kind of a body, judging by its media type.
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

// shownType returns the MIME type of the text that the model reads; "" for plain text.
func (a answer) shownType(raw bool) string {
	switch {
	case a.kind == isBinary:
		return "" // the text is about the body
	case a.kind == isPage && !raw:
		return "text/markdown"
	}
	return a.mediaType
}

// text decodes the content in its charset: the one named in the header, or the one named in the page, or the one that
// it looks like. What cannot be decoded is replaced.
func (a answer) text() string {
	if _, params, err := mime.ParseMediaType(a.contentType); err == nil && params["charset"] == "" && a.kind == isText && utf8.Valid(trimCut(a.content)) {
		return strings.TrimPrefix(string(trimCut(a.content)), "\uFEFF")
	}
	encoding, _, _ := charset.DetermineEncoding(a.content[:min(len(a.content), 1024)], a.contentType)
	decoded, err := encoding.NewDecoder().Bytes(a.content)
	if err != nil {
		decoded = a.content
	}
	return strings.TrimPrefix(strings.ToValidUTF8(string(trimCut(decoded)), "\uFFFD"), "\uFEFF")
}

// trimCut leaves out a last character that was cut in two.
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

// boundedText returns a text cut to maxBody bytes, with a note at its end if something is missing.
func (a answer) boundedText(text string) string {
	const suffix = "\n[cut: this is not all, what is beyond the first 1048576 bytes was not read]"
	if !a.truncated && len(text) <= maxBody {
		return text
	}
	if most := maxBody - len(suffix); len(text) > most {
		text = string(trimCut([]byte(text[:most])))
	}
	return text + suffix
}

// describeBinary returns the text that the model gets instead of a body that is not text; "" if the body is empty.
func (a answer) describeBinary() string {
	if len(a.content) == 0 {
		return ""
	}
	size := fmt.Sprintf("%d bytes", len(a.content))
	if a.truncated {
		size = "more than " + size
	}
	if a.mediaType == "application/pdf" {
		return "[a PDF document of " + size + ": its text cannot be read here; look for the same as a web page]"
	}
	return "[" + visibleText(clip(a.mediaType, 100)) + ", " + size + ": not a text, so not shown]"
}
