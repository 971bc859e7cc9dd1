package api

import (
	"bytes"
	"context"
	"io"
	"maps"
	"net/http"
	"slices"
	"time"

	"parley/bus"
)

// The paths that say whether this process works. They need no token, and requests may name any
// Host.
const (
	healthPath = "/healthz"
	readyPath  = "/readyz"
)

// readyTimeout bounds how long the checks may take that answer a request for readyPath.
const readyTimeout = 5 * time.Second

// serveHealth answers that the process is alive.
func (a *API) serveHealth(w *response, _ *http.Request) error {
	return w.json(http.StatusOK, struct {
		OK bool `json:"ok"`
	}{true})
}

// serveReadiness answers whether all parts, such as the database, are ready, and which are not.
func (a *API) serveReadiness(w *response, r *http.Request) error {
	report := struct {
		Ready bool              `json:"ready"`
		Parts map[string]string `json:"parts"`
	}{true, map[string]string{}}
	if a.cfg.Health.Ready != nil {
		ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
		defer cancel()
		for name, err := range a.cfg.Health.Ready(ctx) {
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
	return w.json(status, report)
}

// metrics answers with the metrics of the process.
func (a *API) metrics(w *response, r *http.Request) error {
	if a.cfg.Metrics == nil {
		return notFound("there are no metrics here")
	}
	a.cfg.Metrics.ServeHTTP(w, r)
	return nil
}

// webhook passes a request to the webhook that the path names.
func (a *API) webhook(w *response, r *http.Request) error {
	w.id = r.PathValue("name")
	if a.cfg.Webhooks != nil {
		if h := a.cfg.Webhooks()[w.id]; h != nil {
			h.ServeHTTP(w, r)
			return nil
		}
	}
	return notFound("no webhook has this name: see [webhooks] in the configuration")
}

// channelsPath is the beginning of the paths to which chat platforms send what people say; the
// channel's name follows.
const channelsPath = "/channels/"

// channel passes a platform's request to the channel that the path names.
func (a *API) channel(w *response, r *http.Request) error {
	w.id = r.PathValue("name")
	if a.cfg.Receivers != nil {
		if h := a.cfg.Receivers()[w.id]; h != nil {
			body, err := a.readBody(w, r, maxJSON)
			if err != nil {
				return err
			}
			w.isRoutine = true
			r.Body = io.NopCloser(bytes.NewReader(body))
			h.ServeHTTP(w, r)
			return nil
		}
	}
	return notFound(`no channel of this name receives over HTTP here: see receive = "http" in the configuration`)
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
	// Reason says why the channel is not up, as far as is known.
	Reason string `json:"reason,omitempty"`
}

// A ToolCount counts a tool's calls since the process was started.
type ToolCount struct {
	Tool      string     `json:"tool"`
	Calls     int64      `json:"calls"`
	Failed    int64      `json:"failed"` // timeouts among them
	Timeouts  int64      `json:"timeouts"`
	Seconds   float64    `json:"seconds"` // how long all calls took together
	LastError string     `json:"last_error,omitempty"`
	LastAt    *time.Time `json:"last_error_at,omitempty"`
}

// status answers with the state of the process, of its channels, and of the messages that wait.
func (a *API) status(w *response, r *http.Request) error {
	h := a.cfg.Health
	report := struct {
		Version  string         `json:"version"`
		Role     string         `json:"role"`
		Started  time.Time      `json:"started"`
		Uptime   float64        `json:"uptime_seconds"`
		Channels []channelState `json:"channels"`
		Topics   []topicState   `json:"topics"`
		Tools    []ToolCount    `json:"tools"`
	}{h.Version, h.Role, h.Started, time.Since(h.Started).Seconds(), []channelState{}, []topicState{}, []ToolCount{}}
	if h.Tools != nil {
		report.Tools = h.Tools()
	}
	if h.Channels != nil {
		up := h.Channels()
		for _, name := range slices.Sorted(maps.Keys(up)) {
			state := channelState{Name: name, Up: up[name]}
			if !state.Up && h.Trouble != nil {
				state.Reason = h.Trouble(name)
			}
			report.Channels = append(report.Channels, state)
		}
	}
	topics, err := a.cfg.Mail.Topics(r.Context())
	if err != nil {
		return err
	}
	for _, t := range topics {
		d, err := a.cfg.Mail.Depth(r.Context(), t)
		if err != nil {
			return err
		}
		report.Topics = append(report.Topics, topicState{t, d.Waiting, d.Leased, d.Delayed, d.Dead, d.Oldest.Seconds()})
	}
	return w.json(http.StatusOK, report)
}
