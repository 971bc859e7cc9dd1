package telegramtest_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"testing"
	"time"

	"parley/channels/telegram/telegramtest"
)

const testTimeout = 2 * time.Minute

var (
	listenAddress = flag.String("listen", "", "serve on this address, for trying things by hand")
	tokenFlag     = flag.String("token", "42:TEST", "the bot's token, with -listen")
)

// TestByHand serves until it is interrupted:
//
//	go test ./channels/telegram/telegramtest -run ByHand -v -timeout 0 -listen 127.0.0.1:8081
//	curl -d '{"chat": 1, "text": "hello"}' http://127.0.0.1:8081/_control/say
//	curl 'http://127.0.0.1:8081/_control/sent?chat=1'
func TestByHand(t *testing.T) {
	if *listenAddress == "" {
		t.Skip("only with -listen")
	}
	ctx, stop := signal.NotifyContext(t.Context(), os.Interrupt)
	defer stop()
	s := telegramtest.New(*tokenFlag, "parley_test_bot")
	url, err := s.Start(*listenAddress)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println("api_url =", url)
	<-ctx.Done()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// An httpCaller calls methods of a server as any client might.
type httpCaller struct {
	*telegramtest.Server
	url string
}

func startServer(t *testing.T) httpCaller {
	t.Helper()
	s := telegramtest.New("42:TEST", "parley_test_bot")
	url, err := s.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return httpCaller{s, url}
}

// post sends a body of a given type to a path, and returns the status and the answer.
func (c httpCaller) post(ctx context.Context, path, kind, body string) (int, string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Content-Type", kind)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	data, err := io.ReadAll(resp.Body)
	if closing := resp.Body.Close(); err == nil {
		err = closing
	}
	return resp.StatusCode, string(data), err
}

// call calls a method with JSON parameters.
func (c httpCaller) call(t *testing.T, method, params string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	status, answer, err := c.post(ctx, "/bot42:TEST/"+method, "application/json", params)
	if err != nil {
		t.Fatal(err)
	}
	return status, answer
}

// updates polls, and returns the ids of the updates.
func (c httpCaller) updates(t *testing.T, params string) string {
	t.Helper()
	_, answer := c.call(t, "getUpdates", params)
	var got struct {
		Result []struct {
			ID int64 `json:"update_id"`
		} `json:"result"`
	}
	if err := json.Unmarshal([]byte(answer), &got); err != nil {
		t.Fatalf("%v in %s", err, answer)
	}
	return fmt.Sprint(got.Result)
}

func TestUpdatesStayUntilConfirmed(t *testing.T) {
	c := startServer(t)
	for range 4 {
		c.Say(1, 1, "hello")
	}
	for _, step := range []struct{ params, want string }{
		{`{"limit": 2}`, "[{1} {2}]"},
		{`{}`, "[{1} {2} {3} {4}]"},
		{`{"offset": 2}`, "[{2} {3} {4}]"},
		{`{}`, "[{2} {3} {4}]"},
		{`{"offset": -2}`, "[{3} {4}]"},
		{`{"offset": 5}`, "[]"},
		{`{}`, "[]"},
	} {
		if got := c.updates(t, step.params); got != step.want {
			t.Errorf("%s: got %s, want %s", step.params, got, step.want)
		}
	}
}

func TestAPollIsEndedByTheNext(t *testing.T) {
	c := startServer(t)
	polls := make(chan string, 2)
	poll := func() {
		_, answer, err := c.post(t.Context(), "/bot42:TEST/getUpdates", "application/x-www-form-urlencoded", "timeout=30")
		polls <- fmt.Sprint(answer, err)
	}
	began := func(n int) {
		for c.Calls("getUpdates") < n {
			if t.Context().Err() != nil {
				t.Fatal("the poll does not begin")
			}
			runtime.Gosched()
		}
	}
	go poll()
	began(1)
	go poll()
	if first := <-polls; !strings.Contains(first, `"error_code":409`) {
		t.Errorf("the first poll ended with %s", first)
	}
	c.Say(7, 7, "hello")
	if second := <-polls; !strings.Contains(second, `"text":"hello"`) {
		t.Errorf("the second poll ended with %s", second)
	}
}

func TestParametersAreReadInEachForm(t *testing.T) {
	c := startServer(t)
	multipart := strings.ReplaceAll(`--XX
Content-Disposition: form-data; name="chat_id"

5
--XX
Content-Disposition: form-data; name="text"

a
b
--XX--
`, "\n", "\r\n")
	multipart = strings.Replace(multipart, "a\r\nb", "a\nb", 1)
	for _, form := range []struct{ kind, body string }{
		{"application/json", `{"chat_id": 5, "text": "a\nb"}`},
		{"application/json", `{"chat_id": "5", "text": "<b>a</b>\nb", "parse_mode": "HTML"}`},
		{"application/x-www-form-urlencoded", "chat_id=5&text=a%0Ab"},
		{"multipart/form-data; boundary=XX", multipart},
	} {
		status, answer, err := c.post(t.Context(), "/bot42:TEST/sendMessage", form.kind, form.body)
		if err != nil || status != 200 {
			t.Errorf("%s: %d %s %v", form.kind, status, answer, err)
		}
	}
	sent, err := c.WaitSent(t.Context(), 5, 4)
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range sent {
		if m.Text != "a\nb" || m.ID != i+1 {
			t.Errorf("message %d is %+v", i, m)
		}
	}
}

func TestRefusedMessages(t *testing.T) {
	c := startServer(t)
	long := strings.Repeat("x", 4097)
	for _, step := range []struct {
		text, mode string
		want       string
	}{
		{"", "", "empty"},
		{" \n", "", "empty"},
		{"<b></b>", "HTML", "empty"},
		{long, "", "too long"},
		{strings.Repeat("🙂", 2049), "", "too long"},
		{"<b>" + long[1:] + "</b>", "HTML", ""},
		{strings.Repeat("&amp;", 4096), "HTML", ""},
		{"a < b", "HTML", "can't parse entities"},
		{"<p>a</p>", "HTML", "can't parse entities"},
		{"<b>a", "HTML", "can't parse entities"},
		{"<b><i>a</b></i>", "HTML", "can't parse entities"},
		{"a < b", "", ""},
		{strings.Repeat(`<a href="https://a.example/`+strings.Repeat("x", 400)+`">x</a>`, 20), "HTML", ""},
		{strings.Repeat(`<a href="https://a.example/`+strings.Repeat("x", 400)+`">x</a>`, 23), "HTML", "ENTITIES_TOO_LONG"},
		{strings.Repeat("<b>x</b>", 4096), "HTML", "ENTITIES_TOO_LONG"},
		{strings.Repeat("<b></b>", 4682) + "x", "HTML", "too long"},
		{`<a href="https://x.y/?a=1&amp;b=2">a</a> <pre><code class="language-go">x</code></pre>`, "HTML", ""},
	} {
		params, err := json.Marshal(map[string]any{"chat_id": 5, "text": step.text, "parse_mode": step.mode})
		if err != nil {
			t.Fatal(err)
		}
		status, answer := c.call(t, "sendMessage", string(params))
		if (step.want == "") != (status == 200) || !strings.Contains(answer, step.want) {
			t.Errorf("%.40q: got %d %.200s, want %q", step.text, status, answer, step.want)
		}
	}
	if status, _, err := c.post(t.Context(), "/bot42:OTHER/getMe", "", ""); err != nil || status != 401 {
		t.Errorf("another token gives %d, %v", status, err)
	}
	if status, _ := c.call(t, "sendPigeon", ""); status != 404 {
		t.Errorf("an unknown method gives %d", status)
	}
}

func TestFormattingBeyondTheLimitIsDropped(t *testing.T) {
	c := startServer(t)
	for pieces, want := range map[int][2]int{100: {100, 0}, 103: {100, 3}} {
		text := strings.Repeat("<b>x</b> ", pieces-1) + `<pre><code class="language-go">x</code></pre>`
		params, err := json.Marshal(map[string]any{"chat_id": pieces, "text": text, "parse_mode": "HTML"})
		if err != nil {
			t.Fatal(err)
		}
		c.call(t, "sendMessage", string(params))
		if sent := c.Sent(int64(pieces)); len(sent) != 1 || [2]int{sent[0].Entities, sent[0].Unformatted} != want {
			t.Errorf("%d pieces: %+v", pieces, sent)
		}
	}
}

func TestUpdatesOfForwardsRepliesAlbumsAndPastes(t *testing.T) {
	c := startServer(t)
	c.call(t, "sendMessage", `{"chat_id": 5, "text": "<b>four</b>", "parse_mode": "HTML"}`)
	c.Reply(5, 5, 1, map[string]any{"text": "why?"})
	c.Reply(5, 5, 2, map[string]any{"text": "no, really"})
	c.Forward(5, 5, telegramtest.FromHidden("Eve", time.Unix(7, 0)), map[string]any{"text": "psst"})
	if album := c.Album(5, 5, "sea", 2); fmt.Sprint(album) != "[5 6]" {
		t.Errorf("the album is %v", album)
	}
	if pieces := c.Paste(5, 5, strings.Repeat("word ", 1000)); fmt.Sprint(pieces) != "[7 8]" {
		t.Errorf("the paste is %v", pieces)
	}
	_, answer := c.call(t, "getUpdates", "{}")
	var got struct {
		Result []struct {
			Message struct {
				Text    string
				Caption string
				Group   string `json:"media_group_id"`
				Origin  struct {
					Name string `json:"sender_user_name"`
				} `json:"forward_origin"`
				Answered struct {
					Text string
					From struct {
						Bot bool `json:"is_bot"`
					}
					Answered any `json:"reply_to_message"`
				} `json:"reply_to_message"`
			}
		}
	}
	if err := json.Unmarshal([]byte(answer), &got); err != nil || len(got.Result) != 7 {
		t.Fatalf("%v in %s", err, answer)
	}
	if m := got.Result[0].Message; m.Text != "why?" || m.Answered.Text != "four" || !m.Answered.From.Bot {
		t.Errorf("the reply to the bot is %+v", m)
	}
	if m := got.Result[1].Message; m.Answered.Text != "why?" || m.Answered.From.Bot || m.Answered.Answered != nil {
		t.Errorf("the reply to the reply is %+v", m)
	}
	if m := got.Result[2].Message; m.Origin.Name != "Eve" || m.Text != "psst" {
		t.Errorf("the forwarded message is %+v", m)
	}
	first, second := got.Result[3].Message, got.Result[4].Message
	if first.Group == "" || first.Group != second.Group || first.Caption != "sea" || second.Caption != "" {
		t.Errorf("the album is %+v and %+v", first, second)
	}
	if n := len(got.Result[5].Message.Text); n > 4096 || n < 4000 || n+len(got.Result[6].Message.Text) < 4990 {
		t.Errorf("the paste begins with %d units", n)
	}
}

func TestFaultsApplyInOrderAndEnd(t *testing.T) {
	c := startServer(t)
	c.Fail(telegramtest.Fault{Method: "sendMessage", Chat: 5, Times: 1, Status: 429, RetryAfter: 3})
	c.Fail(telegramtest.Fault{Method: "sendMessage", Chat: 5, Status: 403, Description: "Forbidden"})
	for _, step := range []struct {
		chat   string
		status int
		holds  string
	}{
		{"6", 200, `"ok":true`},
		{"5", 429, `"retry_after":3`},
		{"5", 403, "Forbidden"},
		{"5", 403, "Forbidden"},
	} {
		status, answer := c.call(t, "sendMessage", `{"chat_id": `+step.chat+`, "text": "a"}`)
		if status != step.status || !strings.Contains(answer, step.holds) {
			t.Errorf("chat %s: %d %s", step.chat, status, answer)
		}
	}
	c.ClearFaults()
	if status, answer := c.call(t, "sendMessage", `{"chat_id": 5, "text": "a"}`); status != 200 {
		t.Errorf("healed: %d %s", status, answer)
	}
	c.Fail(telegramtest.Fault{Times: 1, Act: telegramtest.Cut})
	if _, _, err := c.post(t.Context(), "/bot42:TEST/sendMessage", "application/json", `{"chat_id": 5, "text": "b"}`); err == nil {
		t.Error("the connection was not cut")
	}
	if sent := c.Sent(5); len(sent) != 2 || sent[1].Text != "b" {
		t.Errorf("sent %+v", sent)
	}
}

func TestControlPaths(t *testing.T) {
	c := startServer(t)
	if status, answer, err := c.post(t.Context(), "/_control/say", "", `{"chat": 5, "text": "hi"}`); status != 200 || err != nil {
		t.Errorf("say: %d %s %v", status, answer, err)
	}
	if got := c.updates(t, "{}"); got != "[{1}]" {
		t.Errorf("updates %s", got)
	}
	c.call(t, "sendMessage", `{"chat_id": 5, "text": "hello"}`)
	_, answer, err := c.post(t.Context(), "/_control/sent?chat=5", "", "")
	if err != nil || !strings.Contains(answer, `"text":"hello"`) {
		t.Errorf("sent: %s %v", answer, err)
	}
	if status, _, err := c.post(t.Context(), "/_control/say", "", `{}`); err != nil || status != 400 {
		t.Errorf("a say without a chat gives %d, %v", status, err)
	}
}
