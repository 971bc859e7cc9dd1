package model

import (
	"context"
	"errors"
	"strings"

	"parley/agent/budget"
	"parley/agent/llm"
	"parley/agent/turn"
	"parley/sessions"
)

const (
	// maxTitleInput is how many characters of the message, and of the answer, a model gets to make a title from.
	maxTitleInput = 1000
	// maxTitleWords is the maximum number of words in a title.
	maxTitleWords = 8
	// maxTitleTokens limits the answer. Reasoning models need some tokens before they write anything.
	maxTitleTokens = 1024
)

// NewForTitles returns an asker for the model that makes titles for the session's agent.
func (m *Askers) NewForTitles(s *turn.Session) *Asker {
	return m.newForOtherModel(s, s.Agent.Titles)
}

// newForOtherModel returns an asker for another model than the turn's. The same person pays.
func (m *Askers) newForOtherModel(s *turn.Session, other llm.Model) *Asker {
	own := s.WithoutTurnState()
	own.Payer, own.Agent.Model = s.Payer, other
	return m.New(own)
}

// IsNoAnswer reports whether an error only says that no model has answered, or that none may be asked.
func IsNoAnswer(err error) bool {
	_, failed := errors.AsType[*llm.Error](err)
	_, ended := errors.AsType[*turn.Ending](err)
	_, taken := errors.AsType[*budget.SetAsideError](err)
	return failed || ended || taken || errors.Is(err, ErrUnreserved) || errors.Is(err, errors.ErrUnsupported)
}

// Title asks the model for a title of a conversation that begins with said and answer; "" if its answer
// contains nothing usable as a title.
func Title(ctx context.Context, a *Asker, t *turn.Turn, said, answer string) (string, error) {
	text := "<said>\n" + clipTitleText(said) + "\n</said>\n<answer>\n" + clipTitleText(answer) + "\n</answer>"
	title, err := a.TextOutsideTurn(ctx, t, llm.Request{
		System: titlePrompt, MaxTokens: maxTitleTokens,
		Messages: []llm.Message{{Role: llm.RoleUser, Blocks: []llm.Block{{Kind: llm.BlockText, Text: text}}}},
	})
	if err != nil {
		return "", err
	}
	return plainTitle(a.Redactor().Text(title)), nil
}

// TextOutsideTurn asks the model for a text that is not a step of the turn. The cost is counted like that of the turn's
// calls.
func (a *Asker) TextOutsideTurn(ctx context.Context, t *turn.Turn, r llm.Request) (string, error) {
	defer func() { a.Reservations.Settle(context.WithoutCancel(ctx)) }()
	found, err := a.askOutsideTurn(ctx, t, r, func() {})
	if err != nil {
		return "", err
	}
	return found.Text(), nil
}

// clipTitleText returns at most the first maxTitleInput characters of a text.
func clipTitleText(text string) string {
	letters := []rune(text)
	return string(letters[:min(len(letters), maxTitleInput)])
}

// plainTitle makes a title from a model's text: its first line with content, without markup and quotation
// marks, and shortened if need be; "" if there is none.
func plainTitle(text string) string {
	for line := range strings.Lines(text) {
		var words []string
		for word := range strings.FieldsSeq(line) {
			if word = strings.Trim(word, "*_`~#|<>[]\"“”„«»"); word != "" && len(words) < maxTitleWords {
				words = append(words, word)
			}
		}
		if title := sessions.FirstWords(strings.Join(words, " ")); title != "" {
			return strings.TrimRight(title, ".:")
		}
	}
	return ""
}
