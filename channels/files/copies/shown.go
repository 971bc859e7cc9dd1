package copies

import (
	"net/url"
	"strings"

	"parley/channels/markup"
)

// ShownPaths returns the paths of the files that an answer shows as images: ![description](path). It leaves out
// links, and images that are elsewhere, such as on the web.
func ShownPaths(text string) []string {
	var paths []string
	if !strings.Contains(text, "![") {
		return nil
	}
	for _, to := range markup.Images(text) {
		// Some models refer to their own files in this way.
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

// isElsewhere reports whether an image is not in the workspace: its address is a URL, or a path that leads outside.
func isElsewhere(to string) bool {
	scheme, _, ok := strings.Cut(to, ":")
	return strings.HasPrefix(to, "//") || strings.HasPrefix(to, "#") || ok && !strings.ContainsAny(scheme, "/. ")
}
