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

func pictureBlock(path, bytes string) llm.Block {
	return llm.Block{Kind: llm.BlockPicture, Picture: &llm.Picture{Path: path, Type: "image/png", Data: []byte(bytes)}}
}

// pictureRequest returns a conversation in which a tool has shown a picture, and then a person speaks.
func pictureRequest() *llm.Request {
	r := helloRequest()
	r.Messages = append(r.Messages,
		newMessage(llm.RoleAssistant, llm.Block{Kind: llm.BlockToolUse, Call: "c1", Name: "image", Args: json.RawMessage(`{}`)},
			llm.Block{Kind: llm.BlockToolUse, Call: "c2", Name: "image", Args: json.RawMessage(`{}`)}),
		newMessage(llm.RoleUser, llm.Block{Kind: llm.BlockToolResult, Call: "c1", Content: json.RawMessage(`{}`)},
			llm.Block{Kind: llm.BlockToolResult, Call: "c2", Content: json.RawMessage(`{}`)},
			pictureBlock("a.png", "AAA"), pictureBlock("b.png", "BBB"), textBlock("compare them")))
	return r
}

func TestPicturesFollowTheResults(t *testing.T) {
	s := agenttest.New(agenttest.Always(agenttest.Reply("fine")))
	if _, err := askOnce(t, scriptedModel(t, s), pictureRequest()); err != nil {
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

// Consecutive messages of people are joined; pictures keep their places.
func TestPicturesOfMessagesThatAreJoined(t *testing.T) {
	s := agenttest.New(agenttest.Always(agenttest.Reply("fine")))
	r := &llm.Request{Messages: []llm.Message{
		newMessage(llm.RoleUser, textBlock("one")), newMessage(llm.RoleUser, pictureBlock("a.png", "A"), textBlock("two")), newMessage(llm.RoleUser, textBlock("three")),
	}}
	if _, err := askOnce(t, scriptedModel(t, s), r); err != nil {
		t.Fatal(err)
	}
	messages := s.Requests()[0].Messages()
	if len(messages) != 1 || len(messages[0].Pictures) != 1 || messages[0].Content != "one\n\n[picture a.png:]\n\ntwo\n\nthree" {
		t.Errorf("sent %+v", messages)
	}
}

func TestLearnsThatAModelSeesNoPictures(t *testing.T) {
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
		m := scriptedModel(t, s)
		for range 2 {
			if _, err := askOnce(t, m, pictureRequest()); err != nil {
				t.Fatalf("%s: %v", refusal, err)
			}
		}
		last := s.Requests()[s.Asked()-1].Messages()
		if s.Asked() != 3 || !m.Info().Blind || !strings.Contains(last[len(last)-1].Content, "[picture a.png: you cannot see pictures]") {
			t.Errorf("%s: asked %d times, blind %v, at last with %+v", refusal, s.Asked(), m.Info().Blind, last)
		}
	}
}

// A refusal of one unreadable picture doesn't mean that the model sees none.
func TestABadPictureTeachesNothing(t *testing.T) {
	s := agenttest.New(agenttest.Always(agenttest.Fail(http.StatusBadRequest, `{"error":{"message":"You uploaded an unsupported image. Please make sure your image is valid.","type":"invalid_request_error","code":"invalid_image_format"}}`)))
	m := scriptedModel(t, s)
	if _, err := askOnce(t, m, pictureRequest()); err == nil || m.Info().Blind || s.Asked() != 1 {
		t.Errorf("asked %d times, blind %v, %v", s.Asked(), m.Info().Blind, err)
	}
}

func TestABlindModelIsSentNoPictures(t *testing.T) {
	s := agenttest.New(agenttest.Always(agenttest.Reply("fine")))
	m := scriptedModel(t, s, func(c *openai.Config) { c.Blind = true })
	if _, err := askOnce(t, m, pictureRequest()); err != nil || !m.Info().Blind || strings.Contains(string(s.Requests()[0].Body), "image_url") {
		t.Errorf("blind %v, sent %s, %v", m.Info().Blind, s.Requests()[0].Body, err)
	}
}
