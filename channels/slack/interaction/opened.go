package interaction

import (
	"encoding/json"
	"fmt"
)

// A SurfaceOpened says that a person has opened the app's home or the pane beside a channel, or has switched to
// another channel while the pane is open.
type SurfaceOpened struct {
	ID     string
	User   string
	Chat   string // the person's chat with the bot
	Thread string // the pane's thread; "" if the home was opened
	Beside string // the channel that the person is reading next to the pane, if Slack says
}

// ReadSurfaceOpened reads an event; false if it does not say that the app's home or its pane was opened, or if a
// required field is missing.
func ReadSurfaceOpened(event json.RawMessage) (SurfaceOpened, bool, error) {
	var e struct {
		Type    string `json:"type"`
		At      string `json:"event_ts"`
		User    string `json:"user"`
		Channel string `json:"channel"`
		Tab     string `json:"tab"`
		Pane    struct {
			User    string `json:"user_id"`
			Channel string `json:"channel_id"`
			Thread  string `json:"thread_ts"`
			Context struct {
				Channel string `json:"channel_id"`
			} `json:"context"`
		} `json:"assistant_thread"`
	}
	if err := json.Unmarshal(event, &e); err != nil {
		return SurfaceOpened{}, false, fmt.Errorf("read what was opened: %w", err)
	}
	o := SurfaceOpened{ID: "opened:" + e.At + ":seen", User: e.User, Chat: e.Channel}
	switch e.Type {
	case "app_home_opened":
		return o, e.Tab == "home" && o.User != "" && o.Chat != "", nil
	case "assistant_thread_started", "assistant_thread_context_changed":
		o.User, o.Chat, o.Thread, o.Beside = e.Pane.User, e.Pane.Channel, e.Pane.Thread, e.Pane.Context.Channel
		return o, o.User != "" && o.Chat != "" && isTS(o.Thread), nil
	}
	return SurfaceOpened{}, false, nil
}
