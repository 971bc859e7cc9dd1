package worker_test

import (
	"context"
	"strings"
	"testing"

	"parley/agent/llm"
	"parley/tools"
)

// picturesIn returns which pictures of a request the model gets, and which are only named.
func picturesIn(r llm.Request) (shown, named []string) {
	for _, m := range r.Messages {
		for _, b := range m.Blocks {
			switch {
			case b.Kind == llm.BlockPicture:
				shown = append(shown, b.Picture.Path+"="+string(b.Picture.Data))
			case strings.HasPrefix(b.Text, "<notice>[picture "):
				named = append(named, b.Text)
			}
		}
	}
	return shown, named
}

// pictureTool is a tool that shows a picture of the given path.
func pictureTool() tools.Tool {
	return tools.New(tools.Spec{Name: "look", Description: "looks", Effect: tools.Pure},
		func(_ context.Context, _ tools.Call, a echoArgs) (any, error) {
			return tools.Shown{Value: "it follows", Pictures: []tools.Picture{{Path: a.Say, View: "kept/" + a.Say, Hash: "h", Type: "image/png"}}}, nil
		})
}

func TestAPictureIsShownForTwoTurns(t *testing.T) {
	requests := make(chan llm.Request, 10)
	b := newBench(t, nil, pictureTool())
	asked := 0
	b.agent.Model = model(func(_ context.Context, r llm.Request) (llm.Answer, error) {
		requests <- r
		if asked++; asked == 1 {
			return callsAnswer(`look {"say":"a.png"}`), nil
		}
		return textAnswer("fine"), nil
	})
	b.agent.Picture = func(_ context.Context, session string, p llm.Picture) []byte {
		return []byte(session + " " + p.View + " " + p.Hash)
	}
	b.run()
	b.wantReply(b.say("c", "alex", "look"), "fine")
	<-requests
	want := "a.png=main:test:c kept/a.png h"
	if shown, named := picturesIn(<-requests); len(shown) != 1 || shown[0] != want || len(named) > 0 {
		t.Errorf("in its turn: %q, %q", shown, named)
	}
	b.wantReply(b.say("c", "alex", "again?"), "fine")
	if shown, named := picturesIn(<-requests); len(shown) != 1 || shown[0] != want || len(named) > 0 {
		t.Errorf("in the next turn: %q, %q", shown, named)
	}
	b.wantReply(b.say("c", "alex", "and now?"), "fine")
	if shown, named := picturesIn(<-requests); len(shown) > 0 || len(named) != 1 || !strings.Contains(named[0], "a.png") {
		t.Errorf("in the third: %q, %q", shown, named)
	}
	if kinds := b.kinds("c"); !strings.Contains(kinds, "tool_result picture ") {
		t.Errorf("the log is %s", kinds)
	}
}

// A picture that is gone or has changed is named, and so is each picture if the model can't see.
func TestAPictureThatCannotBeShownIsNamed(t *testing.T) {
	for name, read := range map[string]func(context.Context, string, llm.Picture) []byte{
		"gone": func(context.Context, string, llm.Picture) []byte { return nil }, "none are shown": nil,
	} {
		t.Run(name, func(t *testing.T) {
			requests := make(chan llm.Request, 10)
			b := newBench(t, nil, pictureTool())
			asked := 0
			b.agent.Model = model(func(_ context.Context, r llm.Request) (llm.Answer, error) {
				requests <- r
				if asked++; asked == 1 {
					return callsAnswer(`look {"say":"a.png"}`, `look {"say":"b.png"}`), nil
				}
				return textAnswer("fine"), nil
			})
			b.agent.Picture = read
			b.run()
			b.wantReply(b.say("c", "alex", "look"), "fine")
			<-requests
			if shown, named := picturesIn(<-requests); len(shown) > 0 || len(named) != 2 {
				t.Errorf("%q, %q", shown, named)
			}
		})
	}
}
