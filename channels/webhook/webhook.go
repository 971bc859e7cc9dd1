// Package webhook turns what other programs post, such as alerts, builds and plain JSON, into messages.
//
// A Handler serves one configured webhook. It answers 202 once the message is durable, including if it already was:
// a delivery that GitHub repeats, and a notification about the same alerts that a second Alertmanager sends, become
// one message. If the message can't be made durable, it answers 503, and the sender tries again.
//
// Templates use Go's text/template on the JSON as posted. What they print is escaped, so that a label or a commit
// message is shown literally and notifies nobody; {{ raw .text }} prints Markdown. Values that are missing or null
// print nothing, and a template that prints nothing sends nothing. If a template fails, the fields are sent as they
// were posted.
//
// With an agent, a delivery starts a turn instead of being sent as a message (see package events). It does so only
// if its template prints something.
//
// The files, in reading order: webhook.go is the Handler, receive.go reads a request; event.go passes it to an
// agent; alert.go recognizes Alertmanager notifications that have come before, builtin.go contains the built-in
// templates; template.go, functions.go and escape.go print a template; depth.go limits how large and how deeply
// nested JSON may be, and prints it.
package webhook

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"text/template"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/markup"
	"parley/channels/outbox"
	"parley/tools/plainjson"
)

// The kinds of webhooks.
const (
	Alertmanager = "alertmanager"
	GitHub       = "github"
	JSON         = "json"
)

// An Outbox accepts messages to be sent; it is an *outbox.Outbox.
type Outbox interface {
	Accept(ctx context.Context, r outbox.Request) (outbox.Status, error)
	// Record records a request and publishes nothing; if there already is a submission with the same key, it
	// returns that one.
	Record(ctx context.Context, r outbox.Request, to []bus.Address) (channels.Submission, error)
}

// Config holds the settings of one webhook, and the parts that it works with.
type Config struct {
	Name   string
	Kind   string
	Token  string // the token that senders present; "" means that no token is accepted
	Secret string // the secret that senders sign with; "" means that no signature is accepted
	// Routes are tried in order, and the first that matches decides. If none does, the message goes to the
	// destinations in To. Places are targets and addresses.
	Routes   []Route
	To       []string
	Template string // "" means the kind's default
	// Agent, if set, is given what is posted; the places then get the agent's answer.
	Agent Starter
	// Group is a template for plain JSON that prints the name of the group that a post belongs to; the agent
	// discusses each group in a session of its own. "" means that there is only one group.
	Group string

	Outbox Outbox
	// Resolve returns the addresses of places; it is needed only with an Agent.
	Resolve func(places []string) ([]bus.Address, error)
	// Point, if set, is called at each step of starting a turn at which a test may kill the process.
	Point func(name string)
	Log   *slog.Logger
	Now   func() time.Time // nil means time.Now
	// BodyTimeout is how long a body may take to arrive: 10 s if zero.
	BodyTimeout time.Duration
}

// A Route sends the posts that match it to its own places.
type Route struct {
	// Match holds the values that a post must contain: Alertmanager's common labels by name, GitHub's "event", and
	// JSON values by their paths, with dots.
	Match map[string]string
	To    []string // where they go; if empty, they are dropped
}

const (
	maxBody    = 1 << 20
	retryAfter = "5" // seconds
)

// A Handler serves the posts to one webhook.
type Handler struct {
	config Config
	text   *template.Template
	groups *template.Template // nil means that there is only one group
	recent *recentNotifications
}

// New makes the handler of a webhook. It fails only if one of its templates is wrong.
func New(c Config) (*Handler, error) {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.BodyTimeout <= 0 {
		c.BodyTimeout = 10 * time.Second
	}
	text := c.Template
	if text == "" {
		text = map[string]string{Alertmanager: alertmanagerText, GitHub: githubText, JSON: jsonText}[c.Kind]
	}
	t, err := compile("template", text)
	if err != nil {
		return nil, fmt.Errorf("webhook %s: %w", c.Name, err)
	}
	h := &Handler{config: c, text: t, recent: newRecentNotifications()}
	if c.Group != "" {
		if h.groups, err = compileGroup(c.Group); err != nil {
			return nil, fmt.Errorf("webhook %s: group: %w", c.Name, err)
		}
	}
	return h, nil
}

// WithConfig makes a handler with new settings that, like h, knows which notifications have been sent.
func (h *Handler) WithConfig(c Config) (*Handler, error) {
	next, err := New(c)
	if err != nil {
		return nil, err
	}
	next.recent = h.recent
	return next, nil
}

// A delivery is one post to a webhook, as it was decoded.
type delivery struct {
	body  []byte
	event string         // GitHub's event
	key   string         // the sender's id for the delivery; "" if it has none
	data  map[string]any // what templates and routes see
}

// ServeHTTP answers one post.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	status, size, err := h.serve(w, r)
	if err == nil {
		w.WriteHeader(http.StatusAccepted)
		if err := plainjson.NewEncoder(w).Encode(status); err != nil {
			h.config.Log.Debug("the answer was not taken", slog.String("webhook", h.config.Name), slog.Any("error", err))
		}
		h.config.Log.Info("delivery accepted", slog.String("webhook", h.config.Name), slog.String("message", status.ID),
			slog.Int("destinations", len(status.Destinations)), slog.Int("bytes", size))
		return
	}
	f := refusalOf(err)
	if f.status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", retryAfter)
	}
	w.WriteHeader(f.status)
	body := map[string]bus.Failure{"error": {Code: f.code, Message: f.message}}
	if err := plainjson.NewEncoder(w).Encode(body); err != nil {
		h.config.Log.Debug("the answer was not taken", slog.String("webhook", h.config.Name), slog.Any("error", err))
	}
	h.config.Log.Warn("delivery refused", slog.String("webhook", h.config.Name), slog.Int("status", f.status),
		slog.String("code", f.code), slog.Int("bytes", size), slog.Any("error", err))
}

// serve handles a delivery. It returns the state of its message, and the size of its body.
func (h *Handler) serve(w http.ResponseWriter, r *http.Request) (outbox.Status, int, error) {
	w.Header().Set("Content-Type", "application/json")
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return outbox.Status{}, 0, &refusal{http.StatusMethodNotAllowed, "method_not_allowed", "this path only takes deliveries: use POST"}
	}
	if err := h.admit(r); err != nil {
		w.Header().Set("WWW-Authenticate", `Bearer realm="parley"`)
		return outbox.Status{}, 0, err
	}
	body, err := h.readBody(w, r)
	if err != nil {
		return outbox.Status{}, len(body), err
	}
	if err := h.verify(r, body); err != nil {
		w.Header().Set("WWW-Authenticate", `Bearer realm="parley"`)
		return outbox.Status{}, len(body), err
	}
	d, err := h.decode(r, body)
	if err != nil {
		return outbox.Status{}, len(body), err
	}
	status, err := h.accept(r.Context(), d)
	return status, len(body), err
}

// emptyStatus returns the answer to a post that does not become a message.
func emptyStatus() outbox.Status { return outbox.Status{Destinations: []outbox.Destination{}} }

// accept makes a message from a post and passes it to the outbox. It ignores a post that has no destination or no
// visible text.
func (h *Handler) accept(ctx context.Context, d delivery) (outbox.Status, error) {
	if h.config.Kind == GitHub && d.event == "ping" {
		return emptyStatus(), nil
	}
	to, text := h.route(d), ""
	if len(to) > 0 {
		text = h.render(d)
	}
	if markup.IsBlank(text) {
		if h.config.Kind == Alertmanager {
			h.rememberUnsent(d)
		}
		return emptyStatus(), nil
	}
	req := outbox.Request{
		// A token's name contains no slash, so no token can have the messages of a webhook.
		Origin: "webhook/" + h.config.Name,
		To:     to, Text: text, Key: d.key, Digest: digest(string(d.body)),
	}
	out := h.config.Outbox
	if h.config.Agent != nil {
		out = starter{h, d}
	}
	if h.config.Kind == Alertmanager {
		return h.acceptNotification(ctx, out, req, d)
	}
	return out.Accept(ctx, req)
}

// render returns the text of the message about a post. If the template fails, the text says so and shows what was
// posted, so that nothing is lost.
func (h *Handler) render(d delivery) string {
	text, err := execute(h.template(d.event), d.data)
	if err == nil {
		return text
	}
	h.config.Log.Warn("the template failed", slog.String("webhook", h.config.Name))
	const most = maxText - 1000
	return "⚠️ " + escape("The template for webhook "+h.config.Name+" failed: "+truncate(500, err.Error())+". Here's what was posted:") +
		"\n\n" + string(jsonBlock(d.data, most))
}

// template returns the template for an event. GitHub's built-in template defines one for each event that it knows,
// and "other" for the rest; "repo" and "mark" are parts of these.
func (h *Handler) template(event string) *template.Template {
	if h.config.Kind != GitHub || h.config.Template != "" {
		return h.text
	}
	for _, name := range []string{event, "other"} {
		if t := h.text.Lookup(name); t != nil && t != h.text && name != "repo" && name != "mark" {
			return t
		}
	}
	return h.text
}

// digest returns one hash of several texts; their order matters.
func digest(parts ...string) string {
	sum := sha256.New()
	for _, p := range parts {
		// Because each text is preceded by its length, "ab" and "c" differ from "a" and "bc".
		sum.Write([]byte(strconv.Itoa(len(p)) + ":" + p))
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// A refusal says why a delivery was not accepted.
type refusal struct {
	status  int
	code    string
	message string
}

// Error returns the message.
func (f *refusal) Error() string { return f.message }

// refusalOf returns the refusal, with its HTTP status, for an error. If this server is at fault, the status is 503,
// never 4xx: Alertmanager drops a notification that gets a 4xx, but sends it again after a 503.
func refusalOf(err error) *refusal {
	if f, ok := errors.AsType[*refusal](err); ok {
		return f
	}
	switch {
	case errors.Is(err, channels.ErrKeyReused):
		return &refusal{http.StatusConflict, "conflict", "an earlier delivery with this id had a different body: use a new id"}
	case errors.Is(err, bus.ErrFull):
		return &refusal{http.StatusServiceUnavailable, "mailbox_full", err.Error() + ": send it again later"}
	}
	if unknown, ok := errors.AsType[*outbox.UnknownError](err); ok {
		return &refusal{http.StatusServiceUnavailable, "unknown_destination", "this webhook has nowhere to send the message: " + unknown.Error()}
	}
	return &refusal{http.StatusServiceUnavailable, "unavailable", "the delivery can't be stored right now: send it again later"}
}
