package main

import (
	"bytes"
	"fmt"
	"html"
	"strings"
	"time"

	"parley/channels/console/consoletest"
)

// The sizes of the picture's parts, in pixels.
const (
	cellWidth  = 8.4
	cellHeight = 20
	margin     = 16
	titleBar   = 34
)

const style = `text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#d8dee9;white-space:pre}
.b{font-weight:700;fill:#fff}.d{fill:#7f8899}.c{fill:#8fbcbb}.t{font-family:system-ui,sans-serif;font-size:13px;fill:#7f8899;text-anchor:middle}
`

// draw draws the frames one below another. The picture shows one at a time, by moving all of them. For readers
// who don't want animations, it shows the last one.
func draw(frames []frame) []byte {
	var out bytes.Buffer
	w, h := width*cellWidth+2*margin, float64(height*cellHeight)
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" role="img" aria-label="A conversation with Parley in a terminal">`+"\n", w, h+titleBar+margin)
	fmt.Fprintf(&out, "<style>\n%s%s</style>\n", style, motion(frames, h))
	fmt.Fprintf(&out, `<rect width="100%%" height="100%%" rx="10" fill="#1e222a"/>`+"\n")
	for i, color := range []string{"#ff5f57", "#febc2e", "#28c840"} {
		fmt.Fprintf(&out, `<circle cx="%d" cy="17" r="6" fill="%s"/>`+"\n", 20+i*20, color)
	}
	fmt.Fprintf(&out, `<text class="t" x="%.0f" y="22">parley chat</text>`+"\n", w/2)
	rows := &rowSet{ids: map[string]int{}}
	var body bytes.Buffer
	for n, f := range frames {
		top := float64(n) * h
		fmt.Fprintf(&body, `<rect class="c" x="%.1f" y="%.0f" width="%.1f" height="%d" opacity=".6"/>`, float64(f.cursor[0])*cellWidth, top+float64(f.cursor[1]*cellHeight)+2, cellWidth, cellHeight-2)
		for y, row := range f.rows {
			if len(row) > 0 {
				fmt.Fprintf(&body, `<use href="#r%d" y="%.0f"/>`, rows.add(row), top+float64(y*cellHeight))
			}
		}
		body.WriteByte('\n')
	}
	fmt.Fprintf(&out, "<defs>\n%s</defs>\n", rows.drawn.String())
	fmt.Fprintf(&out, `<svg x="%d" y="%d" width="%.0f" height="%.0f"><g class="m">`+"\n%s</g></svg>\n</svg>\n", margin, titleBar, width*cellWidth, h, body.String())
	return out.Bytes()
}

// motion returns the CSS rules that show each frame for as long as its holds says, again and again.
func motion(frames []frame, h float64) string {
	var total, at time.Duration
	for _, f := range frames {
		total += f.holds
	}
	var steps strings.Builder
	for n, f := range frames {
		fmt.Fprintf(&steps, "%.3f%%{transform:translateY(%.0fpx)}\n", 100*at.Seconds()/total.Seconds(), -float64(n)*h)
		at += f.holds
	}
	last := -float64(len(frames)-1) * h
	return fmt.Sprintf(".m{transform:translateY(%.0fpx);animation:m %.2fs step-end infinite}\n@media(prefers-reduced-motion){.m{animation:none}}\n@keyframes m{\n%s}\n",
		last, total.Seconds(), steps.String())
}

// A rowSet contains each distinct row once, because most rows are in many frames.
type rowSet struct {
	ids   map[string]int
	drawn bytes.Buffer
}

// add returns the number of a row, and draws the row if it is new.
func (s *rowSet) add(row []consoletest.Span) int {
	text := drawRow(row)
	id, known := s.ids[text]
	if !known {
		id = len(s.ids)
		s.ids[text] = id
		fmt.Fprintf(&s.drawn, `<text id="r%d" y="15" xml:space="preserve">%s</text>`+"\n", id, text)
	}
	return id
}

// drawRow draws the text of a row.
func drawRow(row []consoletest.Span) string {
	var text strings.Builder
	for _, span := range row {
		class := ""
		switch {
		case span.Faint:
			class = ` class="d"`
		case span.Bold:
			class = ` class="b"`
		}
		fmt.Fprintf(&text, "<tspan%s>%s</tspan>", class, html.EscapeString(span.Text))
	}
	return text.String()
}
