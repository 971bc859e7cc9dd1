package mcp

import (
	"context"
	"log/slog"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxNested limits how deep the form in which a server asks a question may be nested.
const maxNested = 8

// answerQuestions returns the function that answers what a server wants to ask people during a
// call. It asks nobody: if every required field of a form has a default, it answers with the
// defaults, and it declines any other question.
func (s *Servers) answerQuestions(one *server) func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	return func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		answers, ok := defaultAnswers(r.Params.RequestedSchema)
		s.cfg.Log.Info("an MCP server has asked a question", slog.String("server", one.Name), slog.Bool("answered", ok))
		if !ok {
			return &mcp.ElicitResult{Action: "decline"}, nil
		}
		return &mcp.ElicitResult{Action: "accept", Content: answers}, nil
	}
}

// defaultAnswers returns the default answers in a form. It returns false if a required one is
// missing, if the form contains no defaults at all, or if it contains references, because following
// these might never end.
func defaultAnswers(form any) (answers map[string]any, ok bool) {
	schema, isForm := form.(map[string]any)
	fields, hasFields := schema["properties"].(map[string]any)
	if !isForm || !hasFields || !selfContained(schema, maxNested) {
		return nil, false
	}
	required, _ := schema["required"].([]any)
	answers = map[string]any{}
	for name, field := range fields {
		spec, _ := field.(map[string]any)
		if value, has := spec["default"]; has {
			answers[name] = value
		} else if slices.Contains(required, any(name)) {
			return nil, false
		}
	}
	return answers, len(answers) > 0
}

// selfContained reports whether a schema contains no references to other schemas, and is not nested
// too deep.
func selfContained(value any, depth int) bool {
	if depth == 0 {
		return false
	}
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			if strings.HasPrefix(key, "$") && key != "$schema" || !selfContained(inner, depth-1) {
				return false
			}
		}
	case []any:
		return !slices.ContainsFunc(v, func(inner any) bool { return !selfContained(inner, depth-1) })
	}
	return true
}
