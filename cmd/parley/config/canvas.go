package config

import (
	"fmt"
	"path/filepath"

	"parley/cmd/parley/config/schema"
)

// Canvas says how the drawings of agents are shown.
type Canvas struct {
	Browser string // the path of a Chromium, which makes pictures of it for platforms; "" means that files are sent
}

// canvasSection declares the settings of agents' drawings.
func canvasSection() section {
	return section{
		Section: schema.Section{Name: "canvas", Settings: []schema.Setting{
			{Key: "browser", Kind: schema.Text, Example: `"/usr/bin/chromium"`, Fill: schema.Into(func(c *Canvas) any { return &c.Browser })},
		}},
		check: checkCanvas,
	}
}

// checkCanvas reports a browser whose path isn't absolute. Whether the browser is installed matters only when a
// picture is made.
func checkCanvas(l *loader) {
	if program := l.Text("canvas.browser"); program != "" && !filepath.IsAbs(program) {
		l.Report(l.At("canvas.browser"), "canvas.browser", fmt.Sprintf("%q doesn't begin with /", program),
			"write the full path of a Chromium, like /usr/bin/chromium, or leave it out: then files are sent instead of pictures")
	}
}
