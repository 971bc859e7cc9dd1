package openai_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"parley/agent/agenttest"
	"parley/agent/llm"
	"parley/agent/openai"
)

func picture(path, bytes string) llm.Block {
	return llm.Block{Kind: llm.BlockPicture, Picture: &llm.Picture{Path: path, Type: "image/png", Data: []byte(bytes)}}
}

// looked is a conversation in which a tool has shown a picture, and then somebody speaks.
func looked() *llm.Request {
	r := hello()
	r.Messages = append(r.Messages,
		said(llm.RoleAssistant, llm.Block{Kind: llm.BlockToolUse, Call: "c1", Name: "image", Args: json.RawMessage(`{}`)},
			llm.Block{Kind: llm.BlockToolUse, Call: "c2", Name: "image", Args: json.RawMessage(`{}`)}),
		said(llm.RoleUser, llm.Block{Kind: llm.BlockToolResult, Call: "c1", Content: json.RawMessage(`{}`)},
			llm.Block{Kind: llm.BlockToolResult, Call: "c2", Content: json.RawMessage(`{}`)},
			picture("a.png", "AAA"), picture("b.png", "BBB"), text("compare them")))
	return r
}

func TestPicturesFollowTheResults(t *testing.T) {
	s := agenttest.New(agenttest.Always(agenttest.Reply("fine")))
	if _, err := ask(t, model(t, s), looked()); err != nil {
		t.Fatal(err)
	}
	messages := s.Requests()[0].Messages()
	last := messages[len(messages)-1]
	if messages[len(messages)-2].Role != "tool" || messages[len(messages)-3].Role != "tool" {
		t.Errorf("something stands between the calls and their results: %+v", messages)
	}
	if len(last.Pictures) != 2 || last.Pictures[0] != "data:image/png;base64,QUFB" || last.Pictures[1] != "data:image/png;base64,QkJC" {
		t.Errorf("shows %q", last.Pictures)
	}
	if last.Content != "[picture a.png:]\n\n[picture b.png:]\n\ncompare them" {
		t.Errorf("says %q", last.Content)
	}
}

// Messages of people that follow one another are one; pictures stay where they were.
func TestPicturesOfMessagesThatAreJoined(t *testing.T) {
	s := agenttest.New(agenttest.Always(agenttest.Reply("fine")))
	r := &llm.Request{Messages: []llm.Message{
		said(llm.RoleUser, text("one")), said(llm.RoleUser, picture("a.png", "A"), text("two")), said(llm.RoleUser, text("three")),
	}}
	if _, err := ask(t, model(t, s), r); err != nil {
		t.Fatal(err)
	}
	messages := s.Requests()[0].Messages()
	if len(messages) != 1 || len(messages[0].Pictures) != 1 || messages[0].Content != "one\n\n[picture a.png:]\n\ntwo\n\nthree" {
		t.Errorf("sent %+v", messages)
	}
}

func TestLearnsThatAModelSeesNothing(t *testing.T) {
	for _, refusal := range []string{
		`{"error":{"message":"Invalid content type. image_url is only supported by certain models.","type":"invalid_request_error"}}`,
		`{"error":{"message":"m is not a multimodal model","type":"BadRequestError","code":400}}`,
		`{"error":{"message":"image input is not supported - hint: if this is unexpected, you may need to provide the mmproj","code":500}}`,
		`{"error":{"message":"No endpoints found that support image input","code":404}}`,
	} {
		s := agenttest.New(func(q agenttest.Request) agenttest.Response {
			for _, m := range q.Messages() {
				if len(m.Pictures) > 0 {
					return agenttest.Fail(http.StatusBadRequest, refusal)
				}
			}
			return agenttest.Reply("fine")
		})
		m := model(t, s)
		for range 2 {
			if _, err := ask(t, m, looked()); err != nil {
				t.Fatalf("%s: %v", refusal, err)
			}
		}
		last := s.Requests()[s.Asked()-1].Messages()
		if s.Asked() != 3 || !m.Info().Blind || !strings.Contains(last[len(last)-1].Content, "[picture a.png: you cannot see pictures]") {
			t.Errorf("%s: asked %d times, blind %v, at last with %+v", refusal, s.Asked(), m.Info().Blind, last)
		}
	}
}

// One picture that a server cannot read says nothing of the model.
func TestABadPictureTeachesNothing(t *testing.T) {
	s := agenttest.New(agenttest.Always(agenttest.Fail(http.StatusBadRequest, `{"error":{"message":"You uploaded an unsupported image. Please make sure your image is valid.","type":"invalid_request_error","code":"invalid_image_format"}}`)))
	m := model(t, s)
	if _, err := ask(t, m, looked()); err == nil || m.Info().Blind || s.Asked() != 1 {
		t.Errorf("asked %d times, blind %v, %v", s.Asked(), m.Info().Blind, err)
	}
}

func TestAModelThatIsToSeeNothingIsSentNothing(t *testing.T) {
	s := agenttest.New(agenttest.Always(agenttest.Reply("fine")))
	m := model(t, s, func(c *openai.Config) { c.Blind = true })
	if _, err := ask(t, m, looked()); err != nil || !m.Info().Blind || strings.Contains(string(s.Requests()[0].Body), "image_url") {
		t.Errorf("blind %v, sent %s, %v", m.Info().Blind, s.Requests()[0].Body, err)
	}
}
