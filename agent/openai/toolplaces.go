package openai

import (
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// toolPlaces returns the positions of tools, in their list, that a refusal states in a field, or else in its message.
func (r *refusal) toolPlaces() []int {
	places, _ := placesIn(r.param)
	if len(places) == 0 {
		places, _ = r.placesInMessage()
	}
	return places
}

// placesInMessage returns the positions of tools that a refusal's message states, if the message is about how tools are
// declared. It also returns the form of the first.
func (r *refusal) placesInMessage() ([]int, string) {
	if r.status != http.StatusBadRequest && r.status != http.StatusUnprocessableEntity ||
		!r.mentions("function", "schema", "declar", "parameter", "descri", "toolspec", "input tag") {
		return nil, ""
	}
	return placesIn(r.message)
}

// placesIn returns the positions of tools, in their list, that a text states: tools[17].function.parameters,
// tools.17.custom.input_schema, ('body', 'tools', 17, 'function'), Gemini's tools[0].function_declarations[17],
// or Bedrock's toolConfig.tools.18.member, which counts from 1. It also returns the form of the first.
func placesIn(text string) (places []int, form string) {
	if !strings.Contains(text, "tools") && !strings.Contains(text, "eclarations") {
		return nil, ""
	}
	for _, one := range []struct {
		pattern string
		from    int
	}{
		{`function_?[dD]eclarations(?:\[|\.)(\d+)`, 0},
		{`\.tools\.(\d+)\.member\.`, 1},
		{`(?:^|[^a-zA-Z_.\]])((?:body\.|toolConfig\.)?tools(?:\[|\.|['"], ?)(\d+))`, 0},
	} {
		for _, found := range regexp.MustCompile(one.pattern).FindAllStringSubmatch(text, -1) {
			i, err := strconv.Atoi(found[len(found)-1])
			if i -= one.from; err == nil && i >= 0 && !slices.Contains(places, i) {
				places = append(places, i)
			}
			if form == "" {
				form = found[max(0, len(found)-2)]
			}
		}
		if len(places) > 0 {
			return places, form
		}
	}
	return nil, ""
}
