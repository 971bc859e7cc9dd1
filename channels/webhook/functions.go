package webhook

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"
	"unicode/utf8"
)

// A markdown is text that a template prints unchanged; every other value is escaped.
type markdown string

// functions returns the functions that templates can call in addition to Go's own. The second group was made for
// the built-in templates, but every template can call them.
func functions() template.FuncMap {
	return template.FuncMap{
		escaperName: escaped,
		"raw":       func(v any) markdown { return markdown(plainText(v)) },
		"code":      func(v any) markdown { return codeSpan(plainText(v)) },
		"json":      func(v any) markdown { return jsonBlock(v, maxText) },
		"link":      makeLink,
		"upper":     func(v any) string { return strings.ToUpper(plainText(v)) },
		"lower":     func(v any) string { return strings.ToLower(plainText(v)) },
		"join":      join,
		"default":   defaultValue,
		"truncate":  truncate,
		"line":      line,
		"headline":  headline,
		"date":      formatDate,

		"bold":     bold,
		"lines":    nonEmptyLines,
		"count":    countText,
		"plain":    plainText,
		"size":     func(v any) int { return len(list(v)) },
		"first":    first,
		"more":     moreText,
		"where":    filterObjects,
		"labels":   labelList,
		"links":    linkList,
		"silence":  silenceURL,
		"when":     firingTimes,
		"about":    subjectURL,
		"numbered": issueLink,
		"branch":   branchName,
		"short":    func(v any) string { return cut(plainText(v), 7) },
		"words":    func(v any) string { return strings.ReplaceAll(plainText(v), "_", " ") },
		"quote":    quote,
	}
}

// escaped returns a value as templates print it: escaped, unless it is already markdown.
func escaped(v any) markdown {
	if m, ok := v.(markdown); ok {
		return m
	}
	return markdown(escape(plainText(v)))
}

// plainText returns a JSON value as text; "" for a missing one.
func plainText(v any) string {
	switch x := v.(type) {
	case nil:
		return ""
	case string:
		return x
	case markdown:
		return string(x)
	case map[string]any, []any:
		return encodeJSON(x, "", maxShownBytes)
	}
	return fmt.Sprint(v)
}

func list(v any) []any {
	l, _ := v.([]any)
	return l
}

// codeSpan shows a text as code on one line. A backtick in it would end the code, so it becomes a single quote.
func codeSpan(s string) markdown {
	if s = line(s); s == "" {
		return ""
	}
	return markdown("`" + strings.ReplaceAll(s, "`", "'") + "`")
}

// jsonBlock shows a value as a block of JSON, cut to at most `most` characters.
func jsonBlock(v any, most int) markdown {
	text := strings.ReplaceAll(encodeJSON(v, "  ", utf8.UTFMax*most+1), "```", "``"+zeroWidth+"`")
	if short := cut(text, most); len(short) < len(text) {
		text = short + "\n…"
	}
	return markdown("```json\n" + text + "\n```")
}

// makeLink returns a link with that text; without a URL, just the text.
func makeLink(text, to any) markdown {
	label, address := escape(line(text)), strings.TrimSpace(plainText(to))
	switch {
	case !isURL(address):
		return markdown(label)
	case label == "":
		return markdown(escape(address))
	}
	return markdown("[" + label + "](" + escape(address) + ")")
}

func join(by string, v any) string {
	if _, ok := v.([]any); !ok {
		return plainText(v)
	}
	var texts []string
	for _, item := range list(v) {
		texts = append(texts, plainText(item))
	}
	return strings.Join(texts, by)
}

// defaultValue returns a value, or instead if it is empty: {{ .key | default "none" }}.
func defaultValue(instead string, v any) string {
	if s := plainText(v); s != "" {
		return s
	}
	return instead
}

// truncate cuts a text to at most `most` characters; 0 means not to cut.
func truncate(most int, v any) string {
	s := strings.TrimSpace(plainText(v))
	if most < 1 || utf8.RuneCountInString(s) <= most {
		return s
	}
	return cut(s, most-1) + "…"
}

// line returns a text on one line, short enough for a title.
func line(v any) string { return truncate(300, strings.Join(strings.Fields(plainText(v)), " ")) }

// headline returns the first line of a text.
func headline(v any) string {
	s, _, _ := strings.Cut(strings.TrimSpace(plainText(v)), "\n")
	return line(s)
}

// bold returns a title in bold, without line breaks.
func bold(v any) markdown {
	s := line(v)
	if s == "" {
		return ""
	}
	return markdown("**" + escape(s) + "**")
}

// nonEmptyLines returns the values that are not empty, each on its own line.
func nonEmptyLines(values ...any) markdown {
	var all []string
	for _, v := range values {
		if s := escaped(v); s != "" {
			all = append(all, string(s))
		}
	}
	return markdown(strings.Join(all, "\n"))
}

// formatDate formats a time in RFC 3339, in UTC and in one of Go's layouts. It returns any other text unchanged.
func formatDate(layout string, v any) string {
	at, err := time.Parse(time.RFC3339Nano, plainText(v))
	if err != nil {
		return plainText(v)
	}
	return at.UTC().Format(layout)
}

// countText returns one, such as "one commit", if n is 1, and otherwise the number followed by many: "3 commits".
func countText(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return strconv.Itoa(n) + " " + many
}

func first(n int, v any) []any {
	l := list(v)
	return l[:min(n, len(l))]
}

// moreText returns, in words, how many items of a list are not shown: those after the first `shown`, and those that
// the sender has left out, whose number is truncated. It returns "" if there are none.
func moreText(shown int, v, truncated any) string {
	left, err := strconv.Atoi(plainText(truncated))
	if err != nil || left < 0 {
		left = 0
	}
	if left += max(0, len(list(v))-shown); left == 0 {
		return ""
	}
	return "…and " + strconv.Itoa(left) + " more"
}

// filterObjects returns the objects in a list that have that value under that key.
func filterObjects(v any, key, value string) []any {
	var picked []any
	for _, item := range list(v) {
		if object, ok := item.(map[string]any); ok && plainText(object[key]) == value {
			picked = append(picked, item)
		}
	}
	return picked
}

// labelList lists an alert's labels, or those that several alerts have in common. It leaves out labels that one of the
// sets in others has with the same value, and the alert's name, which is in the title.
func labelList(v any, others ...any) markdown {
	set, _ := v.(map[string]any)
	var all []string
	for _, name := range slices.Sorted(maps.Keys(set)) {
		known := name == "alertname"
		for _, o := range others {
			other, _ := o.(map[string]any)
			known = known || other[name] == set[name]
		}
		if !known {
			all = append(all, escape(line(name))+": "+escape(line(set[name])))
		}
	}
	const most = 20
	if len(all) > most {
		all = append(all[:most], "…")
	}
	return markdown(strings.Join(all, " · "))
}

// linkList returns several links on one line. The arguments are alternating names and URLs; a name without a URL is
// left out.
func linkList(pairs ...any) markdown {
	var all []string
	for i := 0; i+1 < len(pairs); i += 2 {
		if isURL(strings.TrimSpace(plainText(pairs[i+1]))) {
			all = append(all, string(makeLink(pairs[i], pairs[i+1])))
		}
	}
	return markdown(strings.Join(all, " · "))
}

// silenceURL returns the URL at which a person can silence a notification's alerts; "" if none is firing, if the
// alerts have no labels in common, or if Alertmanager gives no address.
func silenceURL(v any, firing []any) string {
	data, _ := v.(map[string]any)
	at := strings.TrimRight(plainText(data["externalURL"]), "/")
	set, _ := data["commonLabels"].(map[string]any)
	if !isURL(at) || len(set) == 0 || len(firing) == 0 {
		return ""
	}
	var matchers []string
	for _, name := range slices.Sorted(maps.Keys(set)) {
		matchers = append(matchers, name+"="+strconv.Quote(plainText(set[name])))
	}
	// Alertmanager's page expects %20 for spaces in the query in the fragment.
	filter := url.QueryEscape("{" + strings.Join(matchers, ",") + "}")
	return at + "/#/silences/new?filter=" + strings.ReplaceAll(filter, "+", "%20")
}

// firingTimes returns, in words, since when an alert has been firing, or from when and for how long it fired; "" if
// the alert doesn't say so.
func firingTimes(v any) string {
	const layout = "2 Jan 15:04 UTC"
	alert, _ := v.(map[string]any)
	from, err := time.Parse(time.RFC3339Nano, plainText(alert["startsAt"]))
	if err != nil || from.Year() < 2 {
		return ""
	}
	to, err := time.Parse(time.RFC3339Nano, plainText(alert["endsAt"]))
	if plainText(alert["status"]) != "resolved" || err != nil || !to.After(from) {
		return "since " + from.UTC().Format(layout)
	}
	return "from " + from.UTC().Format(layout) + ", for " + durationText(to.Sub(from))
}

func durationText(d time.Duration) string {
	switch {
	case d < time.Minute:
		return d.Round(time.Second).String()
	case d < time.Hour:
		return strconv.Itoa(int(d.Minutes())) + "m"
	}
	return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
}

// issueLink returns a link to an issue or a pull request on GitHub, with its number and title.
func issueLink(v any) markdown {
	object, _ := v.(map[string]any)
	return makeLink("#"+plainText(object["number"])+" "+plainText(object["title"]), object["html_url"])
}

// subjectURL returns the URL of the object that a GitHub event is about: the most specific one that has a page; ""
// if none has one.
func subjectURL(v any) string {
	data, _ := v.(map[string]any)
	for _, key := range []string{plainText(data["event"]), "review", "comment", "alert", "discussion", "pull_request", "issue", "repository"} {
		object, _ := data[key].(map[string]any)
		if page := plainText(object["html_url"]); isURL(page) {
			return page
		}
	}
	return ""
}

// branchName returns the name of a branch or tag without the path under which git keeps it.
func branchName(v any) string {
	ref := plainText(v)
	for _, prefix := range []string{"refs/heads/", "refs/tags/"} {
		if name, ok := strings.CutPrefix(ref, prefix); ok {
			return name
		}
	}
	return ref
}

// quote returns a text as a quotation; of a long text, only the beginning.
func quote(v any) markdown {
	text := clean(truncate(400, v))
	if text == "" {
		return ""
	}
	var lines []string
	for l := range strings.SplitSeq(text, "\n") {
		if l != "" {
			lines = append(lines, "> "+escape(l))
		}
	}
	if most := 6; len(lines) > most {
		lines = append(lines[:most], "> …")
	}
	return markdown(strings.Join(lines, "\n"))
}
