package api

import (
	"fmt"
	"net/http"
	"strings"

	"parley/channels/markup"
	"parley/cmd/parley/api/exchange"
)

// maxRendered is the longest text that is rendered, in bytes: longer than what a model says in one block.
const maxRendered = 256 << 10

// renderHandler renders the agent's texts for web pages.
type renderHandler struct{ renderer *markup.Renderer }

// render renders Markdown as HTML that loads and runs nothing.
func (f renderHandler) render(w *exchange.Answer, r *http.Request) error {
	w.Routine = true
	raw, err := w.ReadJSON(r, exchange.MaxJSON)
	if err != nil {
		return err
	}
	var text string
	if _, err := exchange.Decode(raw, exchange.Field{Name: "markdown", Into: &text, Want: "a string"}); err != nil {
		return err
	}
	if len(text) > maxRendered {
		return exchange.TooLarge(fmt.Sprintf("the text is too long: send at most %d bytes", maxRendered))
	}
	var html strings.Builder
	for _, piece := range f.renderer.Render(text, markup.HTML, 0) {
		html.WriteString(piece.Text)
	}
	return w.JSON(http.StatusOK, struct {
		HTML string `json:"html"`
	}{html.String()})
}
