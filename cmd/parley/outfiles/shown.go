package outfiles

import (
	"net/url"
	"strings"

	"parley/channels/markup"
)

// Shown are the paths of the files that an answer shows as images: ![what it is](path).
// What is elsewhere, as a picture of the web, is none; nor is a link.
func Shown(text string) []string {
	var paths []string
	if !strings.Contains(text, "![") {
		return nil
	}
	for _, to := range markup.Images(text) {
		// Some models write files of their own so.
		to = strings.TrimPrefix(strings.TrimPrefix(to, "sandbox:"), "file://")
		if to == "" || isElsewhere(to) {
			continue
		}
		if plain, err := url.PathUnescape(to); err == nil {
			to = plain
		}
		paths = append(paths, to)
	}
	return paths
}

// isElsewhere tells of the address of an image that it is none of the workspace.
func isElsewhere(to string) bool {
	scheme, _, ok := strings.Cut(to, ":")
	return strings.HasPrefix(to, "//") || strings.HasPrefix(to, "#") || ok && !strings.ContainsAny(scheme, "/. ")
}
