package transcript

import (
	"context"
	"errors"
	"slices"
	"strings"

	"parley/agent/llm"
)

const summaryPrompt = `Summarize the conversation so far for yourself: you will go on with nothing but this summary and the newest messages. Keep what people asked for and decided, what is done and what remains, names, numbers, paths and open tasks, each as exact as it was said. Leave out how you got there. Write plain text, at most 800 words.`

// shorterPrompt is for a model that did not finish its answer to summaryPrompt.
const shorterPrompt = `Summarize the conversation so far for yourself in at most 200 words of plain text: what people asked for and decided, what is done and what remains, names, numbers, paths and open tasks.`

// SumUp has the model summarize the past, in several pieces if it is longer than room, in tokens. It returns ""
// if there is no usable summary: one that was cut off is incomplete, and one that is hardly shorter than the
// past saves nothing. ask asks the model once and pays for the answer; its error is returned.
func SumUp(ctx context.Context, past Past, room int, ask func(ctx context.Context, r llm.Request) (llm.Answer, error)) (string, error) {
	if len(past.Events) == 0 {
		return "", nil
	}
	s := summarizer{past: past, ask: ask}
	most := max(room*BytesPerToken/2, minPiece)
	for size := most; ; size /= 2 {
		text, err := s.summarizePieces(ctx, size)
		if fault, ok := errors.AsType[*llm.Error](err); ok && fault.Fault == llm.Overflow && size >= most/4 {
			continue // try with smaller pieces
		}
		if err == nil && len(text) > (len(past.Summary)+textLength(past.Events))*4/5 {
			text = ""
		}
		return text, err
	}
}

// A summarizer has the model summarize one Past, whole or piece by piece.
type summarizer struct {
	past Past
	ask  func(ctx context.Context, r llm.Request) (llm.Answer, error)
}

// summarizePieces summarizes one piece after another. The model gets each piece along with the summary of the
// pieces before it and with what people said in the current turn.
func (s summarizer) summarizePieces(ctx context.Context, size int) (string, error) {
	summary := s.past.Summary
	head := shortenAll(s.past.OwnWords, size/4)
	for _, piece := range split(s.past.Events, size) {
		blocks := slices.Clone(head)
		if summary != "" {
			blocks = append(blocks, llm.Block{Kind: llm.BlockText, Text: FrameSummary(summary)})
		}
		text, err := s.askOnce(ctx, append(blocks, piece...))
		if err != nil || text == "" {
			return "", err
		}
		summary = text
	}
	return summary, nil
}

// askOnce asks the model for one summary, and for a shorter one if the model did not finish that. It returns ""
// if the model did not finish the shorter one either.
func (s summarizer) askOnce(ctx context.Context, piece []llm.Block) (string, error) {
	for _, prompt := range []string{summaryPrompt, shorterPrompt} {
		blocks := append(slices.Clip(piece), llm.Block{Kind: llm.BlockText, Text: prompt})
		answer, err := s.ask(ctx, llm.Request{Messages: []llm.Message{{Role: llm.RoleUser, Blocks: blocks}}})
		if err != nil {
			return "", err
		}
		if text := textOf(answer); answer.Stop == llm.StopWhole && text != "" {
			return text, nil
		}
	}
	return "", nil
}

// textOf returns the text of an answer.
func textOf(answer llm.Answer) string {
	var text strings.Builder
	for _, b := range answer.Blocks {
		if b.Kind == llm.BlockText {
			text.WriteString(b.Text)
		}
	}
	return strings.TrimSpace(text.String())
}
