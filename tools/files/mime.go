package files

import (
	"path"
	"strings"
)

// mimeOf returns the MIME type of a text file, judging by its name. It doesn't ask the system, whose answer differs from
// machine to machine.
func mimeOf(name string) string {
	switch strings.ToLower(path.Ext(name)) {
	case ".ts", ".tsx", ".mts", ".cts":
		return "text/typescript"
	case ".js", ".jsx", ".mjs", ".cjs":
		return "text/javascript"
	case ".go":
		return "text/x-go"
	case ".py", ".pyi":
		return "text/x-python"
	case ".rb":
		return "text/x-ruby"
	case ".rs":
		return "text/x-rust"
	case ".php":
		return "text/x-php"
	case ".java":
		return "text/x-java"
	case ".c", ".h":
		return "text/x-c"
	case ".cc", ".cpp", ".cxx", ".hh", ".hpp":
		return "text/x-c++"
	case ".sh", ".bash":
		return "text/x-shellscript"
	case ".html", ".htm":
		return "text/html"
	case ".css":
		return "text/css"
	case ".csv":
		return "text/csv"
	case ".md", ".markdown":
		return "text/markdown"
	case ".json":
		return "application/json"
	case ".yaml", ".yml":
		return "application/yaml"
	case ".toml":
		return "application/toml"
	case ".sql":
		return "application/sql"
	case ".xml":
		return "application/xml"
	case ".svg":
		return "image/svg+xml"
	}
	return "text/plain"
}
