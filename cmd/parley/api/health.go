package api

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"time"

	"parley/bus"
	"parley/cmd/parley/api/exchange"
)

// Mail shows the waiting messages and the dead letters.
type Mail interface {
	bus.Inspector
	bus.DeadLetters
}

// Health describes the process and checks its parts.
type Health struct {
	Version string
	Role    string
	Started time.Time
	// Ready checks each part, such as the database, and returns by name why the part is not ready, or nil if it is.
	Ready func(ctx context.Context) map[string]error
	// Channels reports for each channel whether it is connected.
	Channels func() map[string]bool
	// Trouble returns why a channel is not connected, if that is known.
	Trouble func(channel string) string
	// Facts returns what else is known about the channels, by name; nil if nothing is.
	Facts func(ctx context.Context) (map[string]ChannelFacts, error)
	// Tools returns the counts of tool calls in this process; if Tools is nil, there are none.
	Tools func() []ToolCount
	// Work finds what the bot is working on.
	Work Work
	// Fleet returns the processes of the fleet, without their sessions; if Fleet is nil, there is no fleet.
	Fleet func(ctx context.Context) (*Fleet, error)
	// LeftTools returns the tools that models are not shown, because the servers of these models refuse them or
	// take no more tools.
	LeftTools func() []LeftTool
	// Subscriptions are the programs that events are posted to; nil if there are none.
	Subscriptions Subscriptions
}

// These paths report whether this process works. They need no token, and requests to them may name any Host.
const (
	healthPath = "/healthz"
	readyPath  = "/readyz"
)

// readyTimeout limits how long the checks for a request for readyPath may take.
const readyTimeout = 5 * time.Second

// health serves requests about this process.
type health struct {
	Health
	mail    Mail
	metrics http.Handler
}

// alive answers that the process is alive.
func (health) alive(w *exchange.Answer, _ *http.Request) error {
	return w.JSON(http.StatusOK, struct {
		OK bool `json:"ok"`
	}{true})
}

// ready answers whether all parts, such as the database, are ready, and why the others aren't. Unless all are ready,
// the status is 503.
func (h health) ready(w *exchange.Answer, r *http.Request) error {
	report := struct {
		Ready bool              `json:"ready"`
		Parts map[string]string `json:"parts"`
	}{true, map[string]string{}}
	if h.Ready != nil {
		ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
		defer cancel()
		for name, err := range h.Ready(ctx) {
			report.Parts[name] = "ok"
			if err != nil {
				report.Ready, report.Parts[name] = false, err.Error()
			}
		}
	}
	status := http.StatusOK
	if !report.Ready {
		status = http.StatusServiceUnavailable
	}
	return w.JSON(status, report)
}

// serveMetrics answers with the metrics of the process.
func (h health) serveMetrics(w *exchange.Answer, r *http.Request) error {
	if h.metrics == nil {
		return exchange.NotFound("there are no metrics here")
	}
	h.metrics.ServeHTTP(w, r)
	return nil
}

type topicState struct {
	Topic   bus.Topic `json:"topic"`
	Waiting int       `json:"waiting"`
	Leased  int       `json:"leased"`
	Delayed int       `json:"delayed"`
	Dead    int       `json:"dead"`
	Oldest  float64   `json:"oldest_seconds"`
}

type channelState struct {
	Name string `json:"name"`
	Up   bool   `json:"up"`
	// Reason is why the channel is not up, if that is known.
	Reason   string     `json:"reason,omitempty"`
	Platform string     `json:"platform,omitempty"`
	Bot      string     `json:"bot,omitempty"`
	Since    *time.Time `json:"since,omitempty"`
	LastIn   *time.Time `json:"last_in,omitempty"`
	LastOut  *time.Time `json:"last_out,omitempty"`
}

// ChannelFacts is what is known about a channel, besides whether this process is connected to it. A zero field is
// unknown.
type ChannelFacts struct {
	Platform        string
	Bot             string    // the bot's name there
	Up              *bool     // whether the process that receives for the channel is connected; nil if that is this one
	Since           time.Time // since when the channel has been connected or, if it is not, disconnected
	LastIn, LastOut time.Time // when people last said something there, and when something was last sent
}

// channels returns the states of the channels, in the order of their names.
func (h health) channels(ctx context.Context) ([]channelState, error) {
	list := []channelState{}
	if h.Channels == nil {
		return list, nil
	}
	facts := map[string]ChannelFacts{}
	if h.Facts != nil {
		var err error
		if facts, err = h.Facts(ctx); err != nil {
			return nil, err
		}
	}
	up := h.Channels()
	for _, name := range slices.Sorted(maps.Keys(up)) {
		f := facts[name]
		one := channelState{Name: name, Up: up[name], Platform: f.Platform, Bot: f.Bot, Since: exchange.SomeTime(f.Since), LastIn: exchange.SomeTime(f.LastIn), LastOut: exchange.SomeTime(f.LastOut)}
		if f.Up != nil {
			one.Up = *f.Up
		}
		if !one.Up && h.Trouble != nil {
			one.Reason = h.Trouble(name)
		}
		list = append(list, one)
	}
	return list, nil
}

// A ToolCount counts a tool's calls since the process was started.
type ToolCount struct {
	Tool      string     `json:"tool"`
	Calls     int64      `json:"calls"`
	Failed    int64      `json:"failed"` // including timeouts
	Timeouts  int64      `json:"timeouts"`
	Seconds   float64    `json:"seconds"` // how long all calls took together
	LastError string     `json:"last_error,omitempty"`
	LastAt    *time.Time `json:"last_error_at,omitempty"`
}

// A LeftTool is a tool that a model is not shown, because the model's server has refused the tool, or takes no more
// tools.
type LeftTool struct {
	Model string `json:"model"`
	Tool  string `json:"tool"`
	Why   string `json:"why"`
}

// status answers with the state of the process, its channels and the waiting messages and, unless the request says
// brief=true, with what the bot is working on and, in a fleet, with its processes.
func (h health) status(w *exchange.Answer, r *http.Request) error {
	report := struct {
		Version  string         `json:"version"`
		Role     string         `json:"role"`
		Started  time.Time      `json:"started"`
		Uptime   float64        `json:"uptime_seconds"`
		Channels []channelState `json:"channels"`
		Topics   []topicState   `json:"topics"`
		Tools    []ToolCount    `json:"tools"`
		Left     []LeftTool     `json:"left_tools"`

		Subscriptions []SubscriptionState `json:"subscriptions"`
		Fleet         *Fleet              `json:"fleet,omitempty"`
		*CurrentWork
	}{h.Version, h.Role, h.Started, time.Since(h.Started).Seconds(), []channelState{}, []topicState{}, []ToolCount{}, []LeftTool{}, nil, nil, nil}
	if h.Tools != nil {
		report.Tools = h.Tools()
	}
	if h.LeftTools != nil {
		report.Left = append(report.Left, h.LeftTools()...)
	}
	var err error
	if report.Channels, err = h.channels(r.Context()); err != nil {
		return err
	}
	if report.Subscriptions, err = h.subscriptions(r.Context()); err != nil {
		return err
	}
	topics, err := h.mail.Topics(r.Context())
	if err != nil {
		return err
	}
	var leased map[string]int
	for _, t := range topics {
		d, err := h.mail.Depth(r.Context(), t)
		if err != nil {
			return err
		}
		if t == bus.InboundTopic {
			leased = d.LeasedBy
		}
		report.Topics = append(report.Topics, topicState{t, d.Waiting, d.Leased, d.Delayed, d.Dead, d.Oldest.Seconds()})
	}
	if r.URL.Query().Get("brief") != "true" {
		now, err := h.Work.read(r.Context(), h.mail)
		if err != nil {
			return err
		}
		report.CurrentWork = &now
		if report.Fleet, err = h.fleet(r.Context(), leased); err != nil {
			return err
		}
	}
	return w.JSON(http.StatusOK, report)
}

// fleet returns the processes of the fleet, and how many sessions each is working on; nil if there is no fleet.
func (h health) fleet(ctx context.Context, leased map[string]int) (*Fleet, error) {
	if h.Fleet == nil {
		return nil, nil
	}
	f, err := h.Fleet(ctx)
	if err != nil {
		return nil, err
	}
	return f.with(leased), nil
}
