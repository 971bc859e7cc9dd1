package nodelinks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"parley/agent/nodes"
	"parley/cmd/parley/api/exchange"
	"parley/cmd/parley/config"
	"parley/sessions"
	stored "parley/sessions/nodes"
	toolnodes "parley/tools/nodes"
	"parley/tools/nodes/wire"
)

// A Node describes a node in the API.
type Node struct {
	Name  string       `json:"name"`
	State stored.State `json:"state"` // waiting, accepted or revoked
	Here  bool         `json:"here"`  // whether it has a link now
	// Since is when the link was opened or lost; nil if there has been none.
	Since        *time.Time `json:"since,omitempty"`
	Joined       *time.Time `json:"joined,omitempty"`
	Platform     string     `json:"platform,omitempty"`
	Release      string     `json:"release,omitempty"`
	Capabilities []string   `json:"capabilities"`
	Tools        []Tool     `json:"tools"` // tools that agents get
	Aside        []Tool     `json:"aside"` // tools that no owner has accepted yet
	Agents       []string   `json:"agents"`
	Trusted      bool       `json:"trusted"`
	// Fingerprint is the fingerprint of the device's key, which the device shows, too. An edge agent over MQTT has no
	// key: its Fingerprint is "", and nothing that it returns is trusted.
	Fingerprint string `json:"fingerprint"`
	Edge        bool   `json:"edge,omitempty"` // whether it is an edge agent over MQTT
	// SSH reports whether it is an ssh:// target, which never joins. Target is the target in the settings, if they
	// still name it.
	SSH    bool   `json:"ssh,omitempty"`
	Target string `json:"target,omitempty"`
	// Digest identifies everything that would be accepted now.
	Digest string `json:"digest"`
}

// A Tool is a tool of a node, in the API's JSON.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"`
	Pure        bool            `json:"pure"` // whether its calls change nothing
}

// describe returns a node as the API shows it.
func (n *Nodes) describe(one nodes.Node) Node {
	settings := n.cfg.Settings()
	shown := Node{
		Name: one.Name, State: one.State, Here: one.Process != "", Since: exchange.SomeTime(one.LinkChanged), Joined: exchange.SomeTime(one.JoinedAt),
		Platform: one.Offer.Platform, Release: one.Offer.Release, Capabilities: append([]string{}, one.Offer.Capabilities...),
		Tools: toolsOf(one.Tools), Aside: toolsOf(one.Unaccepted), Agents: []string{}, Trusted: settings.Nodes[one.Name].Trusted && !one.IsKeyless(),
		Edge: one.IsKeyless(), SSH: one.IsTarget(), Digest: one.Digest(),
	}
	if t, named := settings.SSHTargets()[one.Name]; named && shown.SSH {
		shown.Target = t.String()
	}
	if !shown.Edge && !shown.SSH {
		shown.Fingerprint = wire.Fingerprint(one.Key)
	}
	for _, agent := range slices.Sorted(maps.Keys(settings.Agents)) {
		if settings.MayUseNode(agent, one.Name) {
			shown.Agents = append(shown.Agents, agent)
		}
	}
	return shown
}

// toolsOf converts tools to the form in which the API lists them.
func toolsOf(all []toolnodes.Tool) []Tool {
	list := []Tool{}
	for _, t := range all {
		list = append(list, Tool{t.Name, t.Description, t.Schema, t.Pure})
	}
	return list
}

// Routes returns the routes for nodes that the API serves. Devices authenticate themselves with their keys.
func (n *Nodes) Routes() []exchange.Route {
	admin := exchange.Caller.IsAdmin
	return []exchange.Route{
		{Pattern: "GET /v1/nodes", May: admin, Serve: n.list},
		{Pattern: "GET /v1/nodes/{name}", May: admin, Serve: n.show},
		{Pattern: "POST /v1/nodes/invite", May: admin, Serve: n.invite, Audit: sessions.AuditApproval, Result: "invited"},
		{Pattern: "POST /v1/nodes/{name}/accept", May: admin, Serve: n.accept, Audit: sessions.AuditApproval, Result: "accepted"},
		{Pattern: "POST /v1/nodes/{name}/revoke", May: admin, Serve: n.revoke, Audit: sessions.AuditApproval, Result: "revoked"},
		{Pattern: "POST /" + wire.JoinPath, Open: true, Public: true, Serve: n.join},
		{Pattern: "GET /v1/nodes/link", Open: true, Public: true, Serve: n.link},
	}
}

// list answers with all nodes.
func (n *Nodes) list(w *exchange.Answer, r *http.Request) error {
	found, err := n.List(r.Context())
	if err != nil {
		return err
	}
	all := make([]Node, len(found))
	for i, one := range found {
		all[i] = n.describe(one)
	}
	return w.JSON(http.StatusOK, map[string]any{"nodes": all})
}

// show answers with one node.
func (n *Nodes) show(w *exchange.Answer, r *http.Request) error {
	return n.answerWithNode(r.Context(), w, requestedName(w, r))
}

// answerWithNode answers with a node as it is now.
func (n *Nodes) answerWithNode(ctx context.Context, w *exchange.Answer, name string) error {
	found, err := n.Find(ctx, name)
	if err != nil {
		return refusal(err)
	}
	return w.JSON(http.StatusOK, n.describe(found))
}

// requestedName returns the name in the request's path, and records it in the answer as the request's subject.
func requestedName(w *exchange.Answer, r *http.Request) string {
	w.ID = r.PathValue("name")
	w.Subject = w.ID
	return w.ID
}

// refusal returns the refusal for a failed request about a node.
func refusal(err error) error {
	switch {
	case errors.Is(err, stored.ErrUnknown):
		return exchange.NotFound(textNoNode)
	case errors.Is(err, stored.ErrChanged):
		return exchange.Conflict("changed", textOffered)
	case errors.Is(err, stored.ErrRevoked):
		return exchange.Conflict("revoked", textRevoked)
	}
	return err
}

// An Invitation is a code with which a device can join.
type Invitation struct {
	Code  string    `json:"code"`
	Until time.Time `json:"until"`
	URL   string    `json:"url,omitempty"` // the server's public address; "" if none is configured
	// Broker is the MQTT broker through which nodes reach the server, and BrokerCode the code for joining through it,
	// which also contains a mark of the server's key. Both are "" if there is no broker.
	Broker     string `json:"broker,omitempty"`
	BrokerCode string `json:"broker_code,omitempty"`
}

// invite creates a code with which a device can join.
func (n *Nodes) invite(w *exchange.Answer, r *http.Request) error {
	code, until, err := n.Invite(r.Context())
	if err != nil {
		return err
	}
	invited := Invitation{Code: code, Until: until.UTC(), URL: n.cfg.Settings().HTTP.PublicURL, Broker: n.cfg.Settings().MQTT.URL}
	if invited.Broker != "" {
		if invited.BrokerCode, err = n.brokerCode(r.Context(), code); err != nil {
			return err
		}
	}
	return w.JSON(http.StatusOK, invited)
}

// accept serves an owner's request to accept everything that a node offers, so that agents get it.
func (n *Nodes) accept(w *exchange.Answer, r *http.Request) error {
	name := requestedName(w, r)
	var asked struct{ Digest string }
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 4<<10)).Decode(&asked); err != nil && !errors.Is(err, io.EOF) {
		return exchange.BadRequest("bad_request", `the body must be {} or {"digest": "the one that it was shown with"}`)
	}
	found, err := n.Find(r.Context(), name)
	if err != nil {
		return refusal(err)
	}
	if len(found.Node.Offer) == 0 {
		return exchange.Conflict("never_linked", textUnlinked)
	}
	accepted, err := n.Accept(r.Context(), name, asked.Digest)
	if err != nil {
		return refusal(err)
	}
	w.Noted.Tool = exchange.Shorten(strings.Join(accepted, ", "))
	return w.JSON(http.StatusOK, map[string]any{"accepted": accepted})
}

// revoke serves an owner's request to remove a node.
func (n *Nodes) revoke(w *exchange.Answer, r *http.Request) error {
	name := requestedName(w, r)
	if t, isTarget := n.cfg.Settings().SSHTargets()[name]; isTarget {
		return exchange.Conflict("configured", fmt.Sprintf(textConfigured, t))
	}
	if err := n.Revoke(r.Context(), name); err != nil {
		return refusal(err)
	}
	return n.answerWithNode(r.Context(), w, name)
}

// join serves a device that joins.
func (n *Nodes) join(w *exchange.Answer, r *http.Request) error {
	if !n.tries.Allow() {
		return tooMany()
	}
	raw, err := w.ReadJSON(r, 4<<10)
	if err != nil {
		return err
	}
	var asked wire.JoinRequest
	if err := json.Unmarshal(raw, &asked); err != nil {
		return exchange.BadRequest("bad_request", `the body must be {"code": "…", "name": "…", "key": "base64"}`)
	}
	w.ID = asked.Name
	joined, err := n.admit(r.Context(), asked)
	if err != nil {
		return err
	}
	return w.JSON(http.StatusOK, joined)
}

// tooMany returns the refusal for a device because too many have tried to join.
func tooMany() error {
	return &exchange.Refusal{Status: http.StatusTooManyRequests, Code: "too_many", Message: textTooMany, Retry: time.Minute}
}

// admit lets a device join.
func (n *Nodes) admit(ctx context.Context, asked wire.JoinRequest) (joined wire.JoinAnswer, err error) {
	if isReserved(n.cfg.Settings(), asked.Name) {
		return joined, taken(asked.Name)
	}
	key, err := n.Join(ctx, asked.Code, asked.Name, asked.Key)
	switch {
	case errors.Is(err, nodes.ErrName), errors.Is(err, nodes.ErrKey):
		return joined, exchange.Unprocessable(wire.RefusedForm, "%s", err.Error())
	case errors.Is(err, stored.ErrCode):
		return joined, &exchange.Refusal{Status: http.StatusForbidden, Code: wire.RefusedCode, Message: textWrongCode}
	case errors.Is(err, stored.ErrTaken):
		return joined, taken(asked.Name)
	case err != nil:
		return joined, err
	}
	return wire.JoinAnswer{Name: asked.Name, Key: key}, nil
}

// isReserved reports whether no device may join under a name, because an MCP server has it, whose tools' names would
// begin the same way, or an ssh:// target.
func isReserved(by *config.Config, name string) bool {
	_, isServer := by.MCP[name]
	_, isTarget := by.SSHTargets()[name]
	return isServer || isTarget
}

// taken returns the refusal for a device whose name is taken.
func taken(name string) error {
	return &exchange.Refusal{Status: http.StatusConflict, Code: wire.RefusedName, Message: nameTaken(name)}
}

// link serves a node that opens a link, until the link ends.
func (n *Nodes) link(w *exchange.Answer, r *http.Request) error {
	if !n.cfg.Links {
		return exchange.Unavailable("no_links", textNoLinks)
	}
	n.ServeLink(w.ResponseWriter, r)
	return nil
}
