package model

import (
	"context"
	"strings"

	"parley/agent/llm"
	"parley/agent/turn"
	"parley/sessions"
)

const (
	// titleText is how many characters of what was said, and of the answer, a model gets for a title.
	titleText = 1000
	// titleWords is how many words a title has at most.
	titleWords = 8
	// titleTokens bounds the answer. Models that reason need some before they say anything.
	titleTokens = 1024
)

// NewForTitles returns an asker of the model that makes titles for the session's agent.
func (m *Askers) NewForTitles(s *turn.Session) *Asker {
	own := &turn.Session{Config: s.Config, Lease: s.Lease, Log: s.Log, Journal: s.Journal, Agent: s.Agent, Audits: s.Audits, Count: s.Count, Payer: s.Payer}
	own.Agent.Model = s.Agent.Titles
	return m.New(own)
}

// Title asks the model what a conversation that begins so is to be called; "" if it says nothing that could
// be a title. The cost is counted like that of the turn's calls.
func (a *Asker) Title(ctx context.Context, t *turn.Turn, said, answer string) (string, error) {
	defer func() { a.Reservations.Settle(context.WithoutCancel(ctx)) }()
	text := "<said>\n" + cut(said) + "\n</said>\n<answer>\n" + cut(answer) + "\n</answer>"
	found, err := a.askAside(ctx, t, llm.Request{
		System: titlePrompt, MaxTokens: titleTokens,
		Messages: []llm.Message{{Role: llm.RoleUser, Blocks: []llm.Block{{Kind: llm.BlockText, Text: text}}}},
	}, func() {})
	if err != nil {
		return "", err
	}
	var title strings.Builder
	for _, b := range found.Blocks {
		if b.Kind == llm.BlockText {
			title.WriteString(b.Text)
		}
	}
	return plainTitle(a.Redactor().Text(title.String())), nil
}

// cut returns the beginning of a text.
func cut(text string) string {
	letters := []rune(text)
	return string(letters[:min(len(letters), titleText)])
}

// plainTitle makes a title of a model's text: the first line that says something, without markup and
// quotation marks, and not too long.
func plainTitle(text string) string {
	for line := range strings.Lines(text) {
		var words []string
		for word := range strings.FieldsSeq(line) {
			if word = strings.Trim(word, "*_`~#|<>[]\"“”„«»"); word != "" && len(words) < titleWords {
				words = append(words, word)
			}
		}
		if title := sessions.FirstWords(strings.Join(words, " ")); title != "" {
			return strings.TrimRight(title, ".:")
		}
	}
	return ""
}
