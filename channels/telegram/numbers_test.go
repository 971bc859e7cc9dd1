package telegram_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/bus"
	"parley/channels/telegram"
)

// A renumberingServer returns one update, then none for a week, and then one with a lower number, as Telegram
// may.
type renumberingServer struct {
	startedAt   time.Time
	firstGiven  bool // whether the first update was returned
	secondGiven bool // whether the second one was returned too
}

func (s *renumberingServer) RoundTrip(r *http.Request) (*http.Response, error) {
	answer := `{"ok":true,"result":true}`
	switch path.Base(r.URL.Path) {
	case "getMe":
		answer = `{"ok":true,"result":{"id":4242,"is_bot":true,"username":"` + botName + `"}}`
	case "getUpdates":
		var asked struct{ Offset, Timeout int64 }
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			return nil, err
		}
		answer = `{"ok":true,"result":[` + s.nextUpdate(asked.Offset) + `]}`
		if strings.Contains(answer, "[]") {
			select {
			case <-time.After(time.Duration(max(asked.Timeout, 1)) * time.Second):
			case <-r.Context().Done():
				return nil, r.Context().Err()
			}
		}
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(answer)), Request: r}, nil
}

// nextUpdate returns the next update from an offset on, as JSON; "" if there is none yet.
func (s *renumberingServer) nextUpdate(offset int64) string {
	const low, high = 5, 900_000
	s.firstGiven = s.firstGiven || offset == high+1
	s.secondGiven = s.secondGiven || offset == low+1
	update := func(id, message int) string {
		return fmt.Sprintf(`{"update_id":%d,"message":{"message_id":%d,"date":1700000000,"chat":{"id":1,"type":"private"},"from":{"id":1,"first_name":"A"},"text":"message %d"}}`, id, message, message)
	}
	switch {
	case !s.firstGiven:
		return update(high, 1)
	case !s.secondGiven && time.Since(s.startedAt) > 7*24*time.Hour && offset <= low:
		return update(low, 2)
	}
	return ""
}

// After a week without updates, Telegram may start numbering them from a lower number. Such an update must not
// count as handled.
func TestUpdatesMayBeRenumberedAfterAWeek(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &renumberingServer{startedAt: time.Now()}
		c, err := telegram.New(telegram.Config{Name: "tg", Token: token, HTTP: &http.Client{Transport: server}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 8*24*time.Hour)
		defer cancel()
		var heard []string
		if err := c.Receive(ctx, func(_ context.Context, in bus.Inbound) error {
			heard = append(heard, in.Text)
			return nil
		}); err != nil {
			t.Error(err)
		}
		if !slices.Equal(heard, []string{"message 1", "message 2"}) {
			t.Errorf("heard %q", heard)
		}
	})
}
