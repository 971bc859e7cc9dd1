package model

import (
	"context"
	"strings"

	"parley/agent/llm"
	"parley/agent/turn"
	"parley/sessions"
)

const (
	// titleText is how many characters of the message, and of the answer, a model gets to make a title from.
	titleText = 1000
	// titleWords is how many words a title has at most.
	titleWords = 8
	// titleTokens limits the answer. Reasoning models need some tokens before they write anything.
	titleTokens = 1024
)

// NewForTitles returns an asker for the model that makes titles for the session's agent.
func (m *Askers) NewForTitles(s *turn.Session) *Asker {
	own := &turn.Session{Config: s.Config, Lease: s.Lease, Log: s.Log, Journal: s.Journal, Agent: s.Agent, Audits: s.Audits, Estimator: s.Estimator, Payer: s.Payer}
	own.Agent.Model = s.Agent.Titles
	return m.New(own)
}

// Title asks the model for a title of a conversation that begins with said and answer; "" if its answer
// contains nothing usable as a title.
func Title(ctx context.Context, a *Asker, t *turn.Turn, said, answer string) (string, error) {
	text := "<said>\n" + cut(said) + "\n</said>\n<answer>\n" + cut(answer) + "\n</answer>"
	title, err := a.TextAside(ctx, t, llm.Request{
		System: titlePrompt, MaxTokens: titleTokens,
		Messages: []llm.Message{{Role: llm.RoleUser, Blocks: []llm.Block{{Kind: llm.BlockText, Text: text}}}},
	})
	if err != nil {
		return "", err
	}
	return plainTitle(a.Redactor().Text(title)), nil
}

// TextAside asks the model for a text that is not a step of the turn. The cost is counted like that of the
// turn's calls.
func (a *Asker) TextAside(ctx context.Context, t *turn.Turn, r llm.Request) (string, error) {
	defer func() { a.Reservations.Settle(context.WithoutCancel(ctx)) }()
	found, err := a.askAside(ctx, t, r, func() {})
	if err != nil {
		return "", err
	}
	return found.Text(), nil
}

// cut returns at most the first titleText characters of a text.
func cut(text string) string {
	letters := []rune(text)
	return string(letters[:min(len(letters), titleText)])
}

// plainTitle makes a title from a model's text: its first line with content, without markup and quotation
// marks, and shortened if need be.
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
