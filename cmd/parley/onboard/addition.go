package onboard

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
)

// modelHeader matches the line that begins the table [model], and inlineModel other ways of writing that table.
const (
	modelHeader = `(?m)^[ \t]*\[[ \t]*model[ \t]*\][^\n]*(\n|\z)`
	inlineModel = `(?m)^[ \t]*model[ \t]*[.=]`
)

// added returns the text of the existing file with the additions. Everything else in it stays as it is.
func (s *settings) added() (string, error) {
	raw, err := os.ReadFile(s.file)
	if err != nil {
		return "", fmt.Errorf("read the configuration: %w", err)
	}
	text := strings.TrimRight(string(raw), "\n") + "\n"
	if s.addsModel {
		if text, err = s.withModel(text); err != nil {
			return "", err
		}
	}
	if table := s.channelTable(); table != "" {
		text += "\n" + table
	}
	return text, nil
}

// takesFurtherModel reports whether the existing configuration already has a model other than the demo, so that another
// one goes in a table of its own.
func (s *settings) takesFurtherModel() bool {
	return s.present != nil && s.present.Model.Configured && !s.present.Model.Demo && !s.present.OnlyDemo()
}

// modelTable returns the name of the table for the model: "model", or an unused name for an additional model.
func (s *settings) modelTable() string {
	if !s.takesFurtherModel() {
		return "model"
	}
	for name, n := s.model.provider.name, 2; ; name, n = s.model.provider.name+"-"+strconv.Itoa(n), n+1 {
		if _, taken := s.present.Models[name]; !taken {
			return "models." + name
		}
	}
}

// withModel returns the text of a configuration with the model: in place of the demo, as the first model, or as an
// additional one.
func (s *settings) withModel(text string) (string, error) {
	table := s.modelTable()
	lines := s.modelLines(table)
	from, to := modelTableIn(text)
	if table != "model" {
		text += fmt.Sprintf("\n[%s]\n%s", table, lines)
		if s.model.fallback {
			return withFallback(text, from, to, strings.TrimPrefix(table, "models."))
		}
		return text, nil
	}
	if regexp.MustCompile(inlineModel).MatchString(text) {
		return "", fmt.Errorf("%s sets the model in a line that begins with model = or model.name =: replace that line with\n\n[model]\n%s", s.file, lines)
	}
	if from < 0 {
		return text + "\n# The model that answers.\n[model]\n" + lines, nil
	}
	demo := regexp.MustCompile(`(?m)^[ \t]*name[ \t]*=[ \t]*["']demo["'][^\n]*\n`)
	inside := text[from:to]
	at := demo.FindStringIndex(inside)
	if at == nil {
		at = []int{0, 0}
	}
	return text[:from] + inside[:at[0]] + lines + inside[at[1]:] + text[to:], nil
}

// modelTableIn returns where the settings of the table [model] are: from after its header to the next table; -1 if
// there is no such header.
func modelTableIn(text string) (from, to int) {
	header := regexp.MustCompile(modelHeader).FindStringIndex(text)
	if header == nil {
		return -1, -1
	}
	from, to = header[1], len(text)
	if next := regexp.MustCompile(`(?m)^[ \t]*\[`).FindStringIndex(text[from:]); next != nil {
		to = from + next[0]
	}
	return from, to
}

// withFallback returns the text with another model added to the list of those that are asked if the one in [model]
// doesn't answer.
func withFallback(text string, from, to int, name string) (string, error) {
	if from < 0 {
		return "", fmt.Errorf("there's no [model] table where onboard can add the fallback %q: add it by hand", name)
	}
	inside := text[from:to]
	list := regexp.MustCompile(`(?m)^([ \t]*fallback[ \t]*=[ \t]*\[)([^\]\n]*)\]`)
	at := list.FindStringSubmatchIndex(inside)
	if at == nil {
		if regexp.MustCompile(`(?m)^[ \t]*fallback[ \t]*=`).MatchString(inside) {
			return "", fmt.Errorf("the fallback in [model] takes up more than one line: add %q there by hand", name)
		}
		return text[:from] + "fallback = [" + strconv.Quote(name) + "]\n" + text[from:], nil
	}
	before := strings.TrimRight(strings.TrimSpace(inside[at[4]:at[5]]), ",")
	if before != "" {
		before += ", "
	}
	return text[:from] + inside[:at[4]] + before + strconv.Quote(name) + inside[at[5]:] + text[to:], nil
}
