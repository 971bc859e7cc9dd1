package canvas

import (
	"bytes"
	"fmt"
	"html/template"
)

// The policies that keep a document in a browser from reaching anything else: it may use only its own content. Only the
// first policy lets scripts run.
const (
	Policy      = StillPolicy + "; script-src 'unsafe-inline'"
	StillPolicy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; media-src data:; form-action 'none'; base-uri 'none'"
)

// documentHead is the beginning of all documents. Its policy applies if a person opens the file directly.
const documentHead = `<!doctype html>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{{.Policy}}">
<meta name="viewport" content="width=device-width">
<title>{{.Title}}</title>
{{.Content}}`

// document returns the document that a call shows. numbers says whether a plot also has its numbers in a table.
func (a args) document(numbers bool) ([]byte, error) {
	var content template.HTML
	var err error
	policy := StillPolicy
	switch {
	case a.Table != nil:
		content, err = a.Table.draw(a.Title)
	case a.Plot != nil:
		content, err = a.Plot.draw(a.Title, a.height(), numbers)
	default:
		content = template.HTML(a.HTML) //nolint:gosec // the policy and the frame confine it
		if !a.removeScripts {
			policy = Policy
		}
	}
	if err != nil {
		return nil, err
	}
	doc, err := render(struct {
		Policy, Title string
		Content       template.HTML
	}{policy, a.Title, content}, documentHead)
	return []byte(doc), err
}

// pageStyle is the style of tables and plots.
const pageStyle = `<style>
:root { color-scheme: light; }
body { background: #fff; color: #1a1d23; font: 15px/1.4 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; margin: 16px 16px 48px; overflow-wrap: anywhere; }
h1 { font-size: 1.1rem; margin: 0 0 .6rem; }
table { border-collapse: collapse; }
th, td { border-bottom: 1px solid #d9dde4; padding: .3rem .7rem; text-align: left; vertical-align: top; }
th { background: #f6f7f9; }
.number { text-align: right; font-variant-numeric: tabular-nums; }
svg { display: block; width: 100%; height: auto; font-size: 12px; }
svg text { fill: #5b6270; }
.rule { stroke: #d9dde4; }
.legend { display: flex; flex-wrap: wrap; gap: .3rem 1.2rem; list-style: none; margin: 0 0 .4rem; padding: 0; }
.legend svg { display: inline-block; width: 22px; height: 12px; vertical-align: -1px; margin-right: .4rem; }
details { margin-top: .6rem; }
</style>
`

// render returns the output of a template for some data.
func render(data any, text string) (template.HTML, error) {
	var out bytes.Buffer
	if err := template.Must(template.New("").Parse(text)).Execute(&out, data); err != nil {
		return "", fmt.Errorf("draw a canvas: %w", err)
	}
	return template.HTML(out.String()), nil //nolint:gosec // the template has escaped it
}
