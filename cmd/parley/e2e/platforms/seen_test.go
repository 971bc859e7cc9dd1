package platforms

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"parley/agent/agenttest"
	"parley/cmd/parley/parleytest"
	"parley/tools/documents/documentstest"
)

// reader plays a model that answers with the content of the files that it was shown: the last page of a document, the
// words of a recording, and otherwise what parleytest.Beholder answers.
func reader(r agenttest.Request) agenttest.Response {
	all := r.Messages()
	if last := all[len(all)-1]; last.Role == "user" {
		if _, rest, ok := strings.Cut(last.Content, `type="application/pdf"`); ok {
			_, rest, _ = strings.Cut(rest, `path="`)
			path, _, _ := strings.Cut(rest, `"`)
			return agenttest.Calls(agenttest.ToolCall{Name: "read_file", Args: fmt.Sprintf(`{"path":%q,"pages":"40"}`, path)})
		}
		if _, rest, ok := strings.Cut(last.Content, `kind="voice"`); ok {
			_, words, _ := strings.Cut(rest, ">")
			return agenttest.Reply("I hear " + words)
		}
		return parleytest.Beholder(r)
	}
	return agenttest.Reply("it says " + strings.Join(r.Results(), ""))
}

// stenographer starts a transcription server. It returns the part of a recording after its header as the words.
func stenographer(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		file, _, err := r.FormFile("file")
		if err != nil {
			t.Errorf("asked for %s: %v", r.URL, err)
			return
		}
		raw, err := io.ReadAll(file)
		_, words, ok := strings.Cut(string(raw), recorded)
		if err != nil || !ok {
			t.Errorf("a recording of %d bytes came otherwise, %v", len(raw), err)
		}
		_ = json.NewEncoder(w).Encode(map[string]string{"text": "spoken: " + words}) // the caller may be gone
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// recorded is the header of a recording.
const recorded = "OggS\x00\x02\x00\x00\x00\x00\x00\x00\x00\x00"

// A sight is something that people send, and what the answer to it must contain.
type sight struct {
	what  string
	files []sentFile
	says  []string
}

type sentFile struct {
	name, kind string
	data       []byte
}

func sights(t *testing.T) []sight {
	t.Helper()
	pages := make([]string, 40)
	for i := range pages {
		pages[i] = fmt.Sprintf("This is page %d.", i+1)
	}
	return []sight{
		{"picture", []sentFile{{"a.png", "image/png", parleytest.Picture(t, 90)}}, []string{"red 90", `kind="picture"`}},
		{"document", []sentFile{{"report.pdf", "application/pdf", documentstest.Pages(pages...).Bytes()}}, []string{"it says", "This is page 40."}},
		{"recording", []sentFile{{"voice.ogg", "audio/ogg", []byte(recorded + "call me back")}}, []string{"I hear", "spoken: call me back"}},
		{"album", []sentFile{{"a.png", "image/png", parleytest.Picture(t, 40)}, {"b.png", "image/png", parleytest.Picture(t, 140)}}, []string{"red 40", "red 140"}},
	}
}

// On each platform, the bot answers a picture, a document, a recording and an album once, with what is in them.
func TestWhatIsSentIsSeen(t *testing.T) {
	t.Parallel()
	w := newThree(t, reader, fmt.Sprintf("[transcribe]\nbase_url = %q\nmodel = \"w\"\n", stenographer(t)))
	p := w.serve()
	all := sights(t)
	for i, s := range all {
		w.show(i, s)
	}
	for i, s := range all {
		for platform, said := range w.answers(i) {
			parleytest.WaitFor(t, fmt.Sprintf("%s: what is in the %s", platform, s.what), func() bool {
				answer := strings.Join(said(), "\n")
				return containsAll(answer, s.says...) || strings.Contains(answer, "none works on this machine")
			})
			if strings.Contains(said()[0], "none works on this machine") {
				t.Log("NOT TESTED: this machine cannot have a sandbox, in which documents are read")
			}
		}
	}
	p.Stop()
	for i, s := range all {
		for platform, said := range w.answers(i) {
			if all := said(); len(all) != 1 {
				t.Errorf("%s: the %s is answered %q", platform, s.what, all)
			}
		}
	}
}

func containsAll(text string, words ...string) bool {
	return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) })
}

// slackChat, discordChat and telegramChat return the chat for the sight with a number.
func slackChat(i int) string   { return fmt.Sprint("D1", i) }
func discordChat(i int) string { return fmt.Sprint("5", i) }
func telegramChat(i int) int64 { return int64(10 + i) }

// show sends a sight on each platform, as people do there.
func (w *three) show(i int, s sight) {
	inSlack, inDiscord := []any{}, []any{}
	for n, f := range s.files {
		file := w.slack.AddFile(f.name, f.kind, f.data)
		flags := 0
		kind, fields := "photo", map[string]any{}
		switch s.what {
		case "document":
			kind = "document"
		case "recording":
			kind, file["subtype"], flags = "voice", "slack_audio", 1<<13
		case "album":
			fields["media_group_id"] = "g"
		}
		if n == 0 && kind != "voice" {
			fields["caption"] = "look"
		}
		inSlack = append(inSlack, file)
		inDiscord = append(inDiscord, w.discord.AddFile(f.name, f.kind, f.data))
		w.Telegram.Attach(telegramChat(i), telegramChat(i), kind, f.name, f.data, fields)
		if n == len(s.files)-1 {
			w.slack.Post(slackChat(i), "U1", map[string]any{"text": "look", "subtype": "file_share", "files": inSlack})
			w.discord.Post(discordChat(i), "501", map[string]any{"content": "look", "attachments": inDiscord, "flags": flags})
		}
	}
}

// answers returns a function for each platform, which returns what the bot has sent to the chat of a sight.
func (w *three) answers(i int) map[string]func() []string {
	return map[string]func() []string{
		"Slack":    func() []string { return parleytest.SlackTexts(w.slack.Sent(slackChat(i))) },
		"Discord":  func() []string { return parleytest.DiscordTexts(w.discord.Sent(discordChat(i))) },
		"Telegram": func() []string { return parleytest.Texts(w.Telegram.Sent(telegramChat(i))) },
	}
}
