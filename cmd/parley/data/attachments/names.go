package attachments

import (
	"mime"
	"net/http"
	"path"
	"strings"
	"unicode"

	"parley/bus"
)

// maxName limits the length of a file's name in the workspace, in bytes.
const maxName = 100

// safeName turns a name that somebody gave into one that any tool can use: one part of a
// path, without characters that a shell or a terminal would interpret.
func safeName(name, kind, typ string) string {
	name = path.Base(strings.ReplaceAll(strings.ToValidUTF8(name, "_"), `\`, "/"))
	name = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), unicode.IsMark(r), strings.ContainsRune("._-+@", r):
			return r
		}
		return '_'
	}, name)
	name = strings.Trim(name, "._-")
	ext := path.Ext(name)
	if len(ext) > 16 || len(ext) == len(name) {
		ext = ""
	}
	stem := cut(strings.TrimSuffix(name, ext), maxName-len(ext))
	if stem == "" {
		stem = map[string]string{bus.Picture: "picture", bus.Voice: "voice", bus.Video: "video"}[kind]
	}
	if stem == "" {
		stem = "file"
	}
	if ext == "" {
		ext = extensionOf(typ)
	}
	return stem + ext
}

// cut returns the beginning of a text, at most most bytes long, without splitting a character.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "")
}

// usualExtensions returns the extensions of common kinds of files, by MIME type.
func usualExtensions() map[string]string {
	return map[string]string{
		"image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/webp": ".webp", "application/pdf": ".pdf", "text/plain": ".txt",
		"text/csv": ".csv", "text/html": ".html", "audio/ogg": ".ogg", "application/ogg": ".ogg", "audio/mpeg": ".mp3", "audio/mp4": ".m4a", "audio/wave": ".wav",
		"video/mp4": ".mp4", "video/webm": ".webm", "application/zip": ".zip", "application/json": ".json",
	}
}

// extensionOf returns the extension for a MIME type; "" if usualExtensions doesn't list the type.
func extensionOf(typ string) string {
	base, _, _ := mime.ParseMediaType(typ)
	return usualExtensions()[base]
}

// typeOf returns a file's MIME type, determined from its content. The type that the sender gives, or else that of the
// name's extension, counts only if the content is consistent with it: an office document is a ZIP file, a table is
// text.
func typeOf(raw []byte, name, said string) string {
	sniffed, _, _ := mime.ParseMediaType(http.DetectContentType(raw))
	claimed, _, err := mime.ParseMediaType(said)
	if err != nil {
		claimed = ""
	}
	byName, _, err := mime.ParseMediaType(mime.TypeByExtension(strings.ToLower(path.Ext(name))))
	if err != nil {
		byName = ""
	}
	for _, t := range []string{claimed, byName} {
		switch {
		case sniffed == "application/zip" && strings.HasPrefix(t, "application/vnd."),
			sniffed == "text/plain" && (strings.HasPrefix(t, "text/") || t == "application/json" || t == "application/yaml" || t == "application/toml"),
			sniffed == "text/xml" && (strings.HasSuffix(t, "+xml") || strings.HasSuffix(t, "/xml")),
			sniffed == "application/ogg" && strings.HasPrefix(t, "audio/"),
			sniffed == "video/mp4" && strings.HasPrefix(t, "audio/"),
			sniffed == "application/octet-stream" && strings.HasPrefix(t, "audio/"):
			return t
		}
	}
	return sniffed
}
