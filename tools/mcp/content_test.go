package mcp

import (
	"encoding/json"
	"testing"

	"parley/tools/plainjson"
)

// A text that a server sends twice, as text and in a structured form, is shown to the model once.
func TestRepeatedContentIsShownOnce(t *testing.T) {
	texts := func(all ...string) (blocks []block) {
		for _, text := range all {
			blocks = append(blocks, block{Type: "text", Text: text})
		}
		return blocks
	}
	for name, c := range map[string]struct {
		content          []block
		structured, want string
	}{
		"a text alone":           {texts("x"), `null`, `{"text":"x"}`},
		"the same JSON":          {texts("{ \"sum\": 42 }"), `{"sum":42}`, `{"structured":{"sum":42}}`},
		"a text as only field":   {texts("a <b>\nc"), `{"content":"a <b>\nc"}`, `{"text":"a <b>\nc"}`},
		"JSON in the only field": {texts(`[1,{"a":2}]`), `{"result":[1,{"a":2}]}`, `{"structured":{"result":[1,{"a":2}]}}`},
		"a list, piece by piece": {texts("a", `{"b":1}`), `{"result":["a",{"b":1}]}`, `{"structured":{"result":["a",{"b":1}]}}`},
		"a bare list":            {texts("1", "2"), `[1,2]`, `{"structured":[1,2]}`},
		"more in the text":       {texts("42 in all"), `{"sum":42}`, `{"text":"42 in all","structured":{"sum":42}}`},
		"more in the structure":  {texts("x"), `{"a":"x","b":"y"}`, `{"text":"x","structured":{"a":"x","b":"y"}}`},
		"another order":          {texts("2", "1"), `[1,2]`, `{"content":[{"type":"text","text":"2"},{"type":"text","text":"1"}],"structured":[1,2]}`},
		"a picture beside":       {append(texts("1"), block{Type: "image", Path: "a.png"}), `[1]`, `{"content":[{"type":"text","text":"1"},{"type":"image","path":"a.png"}],"structured":[1]}`},
		"nothing":                {nil, `[]`, `{"structured":[]}`},
	} {
		r := result{Content: c.content}
		if err := json.Unmarshal([]byte(c.structured), &r.Structured); err != nil {
			t.Fatal(err)
		}
		r.dropRepeated()
		if got, err := plainjson.Marshal(r); err != nil || string(got) != c.want {
			t.Errorf("%s: it is %s (%v), want %s", name, got, err, c.want)
		}
	}
}
