package agent

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"parley/bus"
	"parley/sessions"
	"parley/tools"
)

// approval decides about a call that somebody has to approve. It runs if that was
// done, for this call or for the session, and nothing has changed since; else people
// are asked about it, if they can be.
func (r *callRunner) approval(ctx context.Context, p *preparedCall, why string, maybeDone bool) (*tools.Error, *sessions.Ask, error) {
	sum, err := r.sum(ctx, p)
	if err != nil {
		return tools.Errorf(tools.ExecutionFailed, "%s needs an approval, and what is to be approved cannot be looked at: %v", p.input.Name, err), nil, nil
	}
	if p.ask.approved() {
		if p.ask.Hash != sum {
			return hasChanged(p.input.Name), nil, nil
		}
		p.approved = sum
		return nil, nil, nil
	}
	if r.cfg.Asks == nil {
		return needsApproval(p.input.Name, why, "who cannot be asked from here"), nil, nil
	}
	granted, err := r.cfg.Asks.Granted(ctx, r.key(), sum)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", errBusAway, err)
	}
	if granted {
		p.approved = sum
		return nil, nil, nil
	}
	if maybeDone {
		return needsApproval(p.input.Name, why, "who is not asked about a call that was cut off"), nil, nil
	}
	refused, err := r.cannotAsk(ctx)
	if err != nil {
		return nil, nil, err
	}
	if refused != "" {
		return needsApproval(p.input.Name, why, "who cannot be asked now: "+refused), nil, nil
	}
	a := r.newAsk(p, bus.AskApproval)
	a.Hash, a.Reason = sum, why
	if !bytes.Equal(p.input.Args, p.use.Args) {
		a.Args = p.input.Args
	}
	a.Places = encodePlaces(r.approvals().To)
	return nil, a, nil
}

// question is what people are asked by a call whose tool does nothing but ask.
func (r *callRunner) question(ctx context.Context, p *preparedCall) (*tools.Error, *sessions.Ask, error) {
	q, asks, err := tools.AskOf(p.tool, p.input)
	if !asks {
		return nil, nil, nil
	}
	if err != nil {
		return asToolError(err), nil, nil
	}
	if r.cfg.Asks == nil {
		return tools.Errorf(tools.PermissionDenied, "Nobody can be asked from here: end the turn with the question instead."), nil, nil
	}
	why, err := r.cannotAsk(ctx)
	if err != nil {
		return nil, nil, err
	}
	if why != "" {
		return tools.Errorf(tools.PermissionDenied, "Nobody can be asked now: %s. End the turn with the question instead.", why), nil, nil
	}
	a := r.newAsk(p, bus.AskQuestion)
	a.Question, a.Choices = q.Text, q.Choices
	return nil, a, nil
}

func asToolError(err error) *tools.Error {
	if known, ok := err.(*tools.Error); ok { //nolint:errorlint // tools return it as it is
		return known
	}
	return tools.Errorf(tools.InvalidArgs, "%v", err)
}

// cannotAsk says why nobody can be asked now; "" where somebody can.
func (r *callRunner) cannotAsk(ctx context.Context) (string, error) {
	why, err := r.cfg.Asks.Ready(ctx)
	if err != nil {
		return "", fmt.Errorf("%w: %w", errBusAway, err)
	}
	return why, nil
}

func (r *callRunner) newAsk(p *preparedCall, kind string) *sessions.Ask {
	return &sessions.Ask{
		ID: askID(r.key(), p.input.Key), Call: p.id, Kind: kind,
		Expires: time.Now().Add(r.approvals().Expires).UTC().Truncate(time.Second),
	}
}

// askID makes the id of the ask about a call: always the same.
func askID(session, call string) string {
	sum := sha256.Sum256([]byte(session + "\x00" + call))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:bus.AskIDLength]
}

func hasChanged(name string) *tools.Error {
	return tools.Errorf(tools.PermissionDenied, "%s was approved, but what was approved has changed since: its arguments, the directory, or a file that it names. Nothing was done. Call it again if it is still wanted: it will be asked about anew.", name)
}

// stillApproved looks once more, right before an approved call runs.
func (r *callRunner) stillApproved(ctx context.Context, p *preparedCall) *tools.Error {
	if p.approved == "" {
		return nil
	}
	if sum, err := r.sum(ctx, p); err != nil || sum != p.approved {
		return hasChanged(p.input.Name)
	}
	return nil
}

// sum is a sum of all that an approval is about: the tool, its arguments, the session,
// and what the arguments name.
func (r *callRunner) sum(ctx context.Context, p *preparedCall) (string, error) {
	named := ""
	if r.agent.Named != nil {
		var err error
		if named, err = r.agent.Named(ctx, p.input); err != nil {
			return "", err
		}
	}
	h := sha256.New()
	for _, part := range []string{p.input.Name, canonical(p.input.Args), r.key(), named} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// canonical writes a JSON value so that equal ones have the same bytes.
func canonical(raw json.RawMessage) string {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var value any
	if d.Decode(&value) != nil {
		return string(raw)
	}
	again, err := json.Marshal(value)
	if err != nil {
		return string(raw)
	}
	return string(again)
}

// approvals is how approvals are asked for.
func (s *session) approvals() Approvals {
	a := Approvals{}
	if s.cfg.Approvals != nil {
		a = s.cfg.Approvals()
	}
	if a.Expires <= 0 {
		a.Expires = askLives
	}
	return a
}

const askLives = 24 * time.Hour

// encodePlaces writes addresses into the log; none is the conversation itself.
func encodePlaces(places []bus.Address) json.RawMessage {
	if len(places) == 0 {
		return nil
	}
	raw, err := json.Marshal(places)
	if err != nil { // texts always marshal
		panic(err)
	}
	return raw
}
