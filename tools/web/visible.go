package web

import (
	"strconv"
	"strings"

	"golang.org/x/net/html"
)

// visibilityStyles are the CSS properties of one element that may hide it, by lower-case name.
type visibilityStyles map[string]string

// isHidden reports whether an element is invisible to people, so that its text may be written for
// machines only. style is what CSS says about it.
func isHidden(n *html.Node, style visibilityStyles) bool {
	for _, a := range n.Attr {
		switch a.Key {
		case "hidden":
			return true
		case "aria-hidden":
			if strings.EqualFold(strings.TrimSpace(a.Val), "true") {
				return true
			}
		}
	}
	return style.isNotDrawn() || style.isTiny() || style.isOffScreen() || style.isInvisibleColor()
}

// isNotDrawn reports whether the element is not drawn at all.
func (l visibilityStyles) isNotDrawn() bool {
	opacity, set := l.size("opacity")
	return l["display"] == "none" ||
		l["visibility"] == "hidden" || l["visibility"] == "collapse" || l["content-visibility"] == "hidden" ||
		set && opacity < 0.05
}

// isTiny reports whether the element is drawn too small for people to read.
func (l visibilityStyles) isTiny() bool {
	if size, set := l.size("font-size"); set && size < 2 {
		return true
	}
	small := func(names ...string) bool {
		for _, name := range names {
			if size, set := l.size(name); set && size < 2 && l[name] != "auto" {
				return true
			}
		}
		return false
	}
	wide, high := small("width", "max-width"), small("height", "max-height")
	clips := strings.ContainsAny(l["overflow"]+l["overflow-x"]+l["overflow-y"], "dp") // hidden, clip
	return wide && high || clips && (wide || high) ||
		strings.HasPrefix(l["transform"], "scale(0)")
}

// isOffScreen reports whether the element is drawn outside the visible part of the page.
func (l visibilityStyles) isOffScreen() bool {
	far := func(name string) bool {
		size, set := l.size(name)
		return set && size <= -500
	}
	if far("text-indent") || far("margin-left") || far("margin-top") {
		return true
	}
	if l["position"] != "absolute" && l["position"] != "fixed" {
		return false
	}
	return far("left") || far("top") || far("right") || far("bottom") ||
		strings.HasPrefix(l["clip"], "rect(") && strings.Trim(l["clip"], "rect(), 01px") == "" ||
		strings.HasPrefix(l["clip-path"], "inset(50%") || strings.HasPrefix(l["clip-path"], "inset(100%")
}

// isInvisibleColor reports whether the element is drawn in the color of its background, or
// transparent.
func (l visibilityStyles) isInvisibleColor() bool {
	color := l["color"]
	if color == "" {
		return false
	}
	ground := l["background-color"]
	if ground == "" {
		ground = l["background"]
	}
	return color == "transparent" || color == ground || strings.HasPrefix(color, "rgba(") && isTransparent(color)
}

// isTransparent reports whether an rgba color is almost fully transparent; false if its last part is no number.
func isTransparent(color string) bool {
	alpha := strings.TrimSuffix(color[strings.LastIndexAny(color, ",/")+1:], ")")
	n, err := strconv.ParseFloat(strings.TrimSpace(alpha), 64)
	return err == nil && n < 0.05
}

// size reads a property as a length, in approximate pixels; set is false if it is not a length.
func (l visibilityStyles) size(name string) (pixels float64, set bool) {
	value := l[name]
	end := strings.IndexFunc(value, func(r rune) bool { return r != '-' && r != '+' && r != '.' && (r < '0' || '9' < r) })
	if end < 0 {
		end = len(value)
	}
	n, err := strconv.ParseFloat(value[:end], 64)
	if err != nil {
		return 0, false
	}
	switch value[end:] {
	case "em", "rem", "ex", "ch", "vw", "vh", "cm":
		n *= 16
	case "%":
		if name == "opacity" {
			n /= 100
		} else {
			n *= 0.16
		}
	}
	return n, true
}

// declarations reads the declarations in a style attribute or between the braces of a rule. The
// last declaration of a property wins, whether or not another says !important.
func declarations(css string) visibilityStyles {
	style := visibilityStyles{}
	for declaration := range strings.SplitSeq(unescapeCSS(withoutComments(css)), ";") {
		name, value, ok := strings.Cut(declaration, ":")
		if !ok {
			continue
		}
		if name = strings.ToLower(strings.TrimSpace(name)); mayHide(name) {
			value, _, _ = strings.Cut(strings.ToLower(value), "!")
			style[name] = strings.TrimSpace(value)
		}
	}
	return style
}

func withoutComments(css string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(css, "/*")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		if _, css, found = strings.Cut(rest, "*/"); !found {
			return b.String()
		}
	}
}

// unescapeCSS decodes escapes such as \6e, which means n.
func unescapeCSS(css string) string {
	if !strings.Contains(css, `\`) {
		return css
	}
	var b strings.Builder
	for i := 0; i < len(css); i++ {
		if css[i] != '\\' {
			b.WriteByte(css[i])
			continue
		}
		end := i + 1
		for end < len(css) && end-i <= 6 && strings.ContainsRune("0123456789abcdefABCDEF", rune(css[end])) {
			end++
		}
		n, err := strconv.ParseUint(css[i+1:end], 16, 32)
		if err != nil {
			continue // the next character is literal
		}
		b.WriteRune(rune(n))
		if i = end - 1; end < len(css) && css[end] == ' ' {
			i++
		}
	}
	return b.String()
}

// visibleText removes the invisible characters from a text, in which instructions can be hidden:
// tags, zero-width characters, and those that change the writing direction.
func visibleText(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 0xE0000 <= r && r <= 0xE0FFF, 0x202A <= r && r <= 0x202E, 0x2060 <= r && r <= 0x206F,
			r == 0x200B, r == 0x200E, r == 0x200F, r == 0xFEFF, r == 0xAD, r == 0x180E, r == 0x7f,
			r < ' ' && r != '\n' && r != '\r' && r != '\t':
			return -1
		case r == 0x2028, r == 0x2029:
			return '\n'
		}
		return r
	}, text)
}

// mayHide reports whether a property may hide or show something.
func mayHide(property string) bool {
	switch property {
	case "display", "visibility", "content-visibility", "opacity", "font-size", "width", "height", "max-width", "max-height",
		"overflow", "overflow-x", "overflow-y", "transform", "text-indent", "margin-left", "margin-top", "position",
		"left", "top", "right", "bottom", "clip", "clip-path", "color", "background", "background-color":
		return true
	}
	return false
}
