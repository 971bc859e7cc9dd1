package openai

import (
	"log/slog"
	"strconv"
	"strings"

	"parley/agent/llm"
	"parley/agent/openai/toollist"
	"parley/agent/openai/wire"
	"parley/tools"
)

// encode returns the body of a request in a dialect, and the tools in it. The model is told which tools are left out.
func (s *server) encode(r *llm.Request, d dialect) ([]byte, []tools.Spec, error) {
	if d.noTools {
		body, err := s.encodeWith(withoutTools(r, textNoTools), d, nil)
		return body, nil, err
	}
	list, err := s.listTools(r.Tools, d)
	if err != nil {
		return nil, nil, err
	}
	switch {
	case len(list.Sent) == 0 && len(list.LeftOut) > 0:
		r = withoutTools(r, missingToolsText(list.LeftOut))
	case len(list.LeftOut) > 0:
		fewer := *r
		fewer.System += missingToolsText(list.LeftOut)
		r = &fewer
	}
	body, err := s.encodeWith(r, d, list.JSON)
	return body, list.Sent, err
}

// encodeWith returns the body of a request in a dialect. toolList holds its tools as JSON; nil if it has none.
func (s *server) encodeWith(r *llm.Request, d dialect, toolList []byte) ([]byte, error) {
	if d.responses {
		return encodeResponses(r, &s.cfg, s.host, d, toolList)
	}
	messages := messagesOf(s.lists.take(1+len(r.Messages)), r, s.host, d)
	defer s.lists.give(messages)
	if d.native {
		return encodeNative(messages, r.MaxTokens, &s.cfg, s.windows.Known().Tokens, d, toolList)
	}
	w := newWireRequest(r, messages, &s.cfg, d)
	return w.encode(s.bodies.take(), toolList, s.cfg.Body)
}

// listTools returns the tools of a request in a dialect. It logs each tool that is left out, once.
func (s *server) listTools(specs []tools.Spec, d dialect) (*toollist.List, error) {
	list, newly, err := s.tools.List(specs, d.toolForm())
	if err != nil {
		return nil, err
	}
	if len(newly) > 0 {
		s.cfg.Log.Warn("the model is asked without some tools", slog.String("model", s.cfg.Name), slog.Any("tools", namesOf(newly)), slog.String("why", newly[0].Why))
	}
	return list, nil
}

// namesOf returns the names of tools.
func namesOf(all []toollist.LeftOut) (names []string) {
	for _, one := range all {
		names = append(names, one.Name)
	}
	return names
}

// maxMissingNames is how many names of missing tools a model is told.
const maxMissingNames = 64

// missingToolsText returns what is added to the instructions of a model that doesn't get some of the tools.
func missingToolsText(left []toollist.LeftOut) string {
	names := namesOf(left)
	more := ""
	if n := len(names) - maxMissingNames; n > 0 {
		names, more = names[:maxMissingNames], ", and "+strconv.Itoa(n)+" more"
	}
	return textMissingTools(strings.Join(names, ", ") + more)
}

// withoutTools returns a request in the form for a model that gets no tools, with earlier calls and their
// results put into words. why is added to its instructions.
func withoutTools(asked *llm.Request, why string) *llm.Request {
	r := *asked
	if len(r.Tools) > 0 {
		r.System += why
	}
	r.Tools, r.NoCalls = nil, false
	messages := make([]llm.Message, len(r.Messages))
	for i, m := range r.Messages {
		messages[i] = llm.Message{Role: m.Role}
		for _, b := range m.Blocks {
			switch b.Kind {
			case llm.BlockToolUse:
				b = llm.Block{Kind: llm.BlockText, Text: "[I called " + b.Name + " with " + wire.WriteArgs(b.Args) + "]"}
			case llm.BlockToolResult:
				b = llm.Block{Kind: llm.BlockText, Text: "[its result: " + strings.TrimSpace(string(b.Content)) + "]"}
			}
			messages[i].Blocks = append(messages[i].Blocks, b)
		}
	}
	r.Messages = messages
	return &r
}
