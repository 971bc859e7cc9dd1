package skillfolders

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"parley/channels"
	"parley/cmd/parley/api/exchange"
	"parley/sessions"
	"parley/tools"
	"parley/tools/guard"
	"parley/tools/skills"
	"parley/tools/skills/folder"
)

// proposedSubject is the subject of the notes about proposed skills. Each note is about a session, whose
// workspace contains the skill, so a proposal is erased with the session.
const proposedSubject = "skill proposed"

// A Proposal is a skill that an agent has written and that waits until an owner accepts it.
type Proposal struct {
	Name    string `json:"name"`
	Session string `json:"session"` // the session whose workspace contains it
	Hash    string `json:"hash"`    // hash of its files, as they were proposed
	// Strangers reports whether strangers may have written some of it.
	Strangers bool `json:"strangers"`
}

// A ShownProposal is a proposal with all its files.
type ShownProposal struct {
	Proposal
	Files []ProposedFile `json:"files"`
}

// Proposals are the skills that agents propose.
type Proposals struct {
	skills *Skills
	notes  channels.Notes
	tell   func(ctx context.Context, subject, text string)
	reread func() error // reads the operator's skills again
}

// NewProposals returns Proposals. tell notifies the owners, and reread reads the operator's skills again.
func NewProposals(s *Skills, notes channels.Notes, tell func(ctx context.Context, subject, text string), reread func() error) *Proposals {
	return &Proposals{s, notes, tell, reread}
}

// Propose records that the skill with this name in the workspace of a call's session is proposed,
// and tells the owners.
func (p *Proposals) Propose(ctx context.Context, call tools.Call, name string) error {
	found, err := p.readSkill(call.Session, name)
	if err != nil {
		return err
	}
	if p.isTaken(name) {
		return tools.Errorf(tools.InvalidArgs, "the operator already has a skill %s: call the folder %s-v2, and propose that", name, name)
	}
	strangers := ""
	if call.Untrusted || found.Strangers {
		strangers = " strangers"
	}
	if err := p.notes.SetNote(ctx, proposedSubject, call.Session, found.Hash+" "+name+strangers); err != nil {
		return fmt.Errorf("record the proposal: %w", err)
	}
	warning := ""
	if strangers != "" {
		warning = textStrangers
	}
	p.tell(ctx, "skill "+name+" "+found.Hash, fmt.Sprintf(textProposed, call.Agent, name, warning, name))
	return nil
}

// isTaken reports whether one of the operator's skills has this name.
func (p *Proposals) isTaken(name string) bool {
	return slices.ContainsFunc(p.skills.catalog.Load().Skills, func(s skills.Skill) bool { return s.Name == name })
}

// readSkill reads a skill of a session's workspace with all its files. If the skill cannot be proposed, it returns a
// *tools.Error, which the model reads.
func (p *Proposals) readSkill(session, name string) (ShownProposal, error) {
	shown := ShownProposal{Proposal: Proposal{Name: name, Session: session}}
	files, err := p.skills.cfg.Workspace(session)
	if err != nil {
		return shown, err
	}
	place := path.Join(Folder, name)
	skill, problem := folder.Read(files, place)
	if problem != nil {
		return shown, tools.Errorf(tools.InvalidArgs, "%s", problem.Error())
	}
	if shown.Files, err = readProposed(skill.Files, place); err != nil {
		return shown, err
	}
	marks := guard.ReadMarks(files)
	shown.Strangers = slices.ContainsFunc(shown.Files, func(f ProposedFile) bool { return marks.MayContain(path.Join(place, f.Path)) })
	shown.Hash, err = hashOf(shown.Files)
	return shown, err
}

// Waiting returns the proposals that wait for an owner.
func (p *Proposals) Waiting(ctx context.Context) ([]Proposal, error) {
	notes, err := p.notes.AllNoted(ctx, proposedSubject)
	all := []Proposal{}
	for _, n := range notes {
		if words := strings.Fields(n.Value); len(words) >= 2 {
			all = append(all, Proposal{Name: words[1], Session: n.About, Hash: words[0], Strangers: len(words) > 2})
		}
	}
	return all, err
}

// Routes returns the routes that the API serves.
func (p *Proposals) Routes() []exchange.Route {
	const one = " /v1/skills/proposals/{name}"
	return []exchange.Route{
		{Pattern: "GET /v1/skills/proposals", May: exchange.Caller.IsAdmin, Serve: p.list},
		{Pattern: "GET" + one, May: exchange.Caller.IsAdmin, Serve: p.show},
		{Pattern: "POST" + one + "/accept", May: exchange.Caller.IsAdmin, Serve: p.accept, Audit: sessions.AuditApproval, Result: "accepted"},
		{Pattern: "DELETE" + one, May: exchange.Caller.IsAdmin, Serve: p.refuse, Audit: sessions.AuditApproval, Result: "refused"},
	}
}

func (p *Proposals) list(w *exchange.Answer, r *http.Request) error {
	all, err := p.Waiting(r.Context())
	if err != nil {
		return err
	}
	return w.JSON(http.StatusOK, map[string]any{"proposals": all})
}

// requestedProposal returns the proposal that a request names, by its name and, if several conversations propose
// a skill with that name, its session.
func (p *Proposals) requestedProposal(w *exchange.Answer, r *http.Request) (found Proposal, err error) {
	w.ID = r.PathValue("name")
	w.Subject = w.ID
	all, err := p.Waiting(r.Context())
	if err != nil {
		return found, err
	}
	session := r.URL.Query().Get("session")
	all = slices.DeleteFunc(all, func(one Proposal) bool {
		return one.Name != w.ID || session != "" && one.Session != session
	})
	switch len(all) {
	case 0:
		return found, exchange.NotFound("no skill by that name has been proposed: parley skills accept, or GET /v1/skills/proposals, lists those that have been")
	case 1:
		return all[0], nil
	}
	return found, exchange.Conflict("several", fmt.Sprintf("%d conversations have proposed a skill by that name: add the session, as shown in the list", len(all)))
}

// requestedFiles returns the proposal that a request names with its files, as long as they are as proposed.
func (p *Proposals) requestedFiles(w *exchange.Answer, r *http.Request) (ShownProposal, error) {
	found, err := p.requestedProposal(w, r)
	if err != nil {
		return ShownProposal{}, err
	}
	shown, err := p.readSkill(found.Session, found.Name)
	if wrong, ok := errors.AsType[*tools.Error](err); ok {
		return shown, exchange.Conflict("changed", "it can't be viewed anymore: "+wrong.Message)
	}
	if err == nil && shown.Hash != found.Hash {
		return shown, exchange.Conflict("changed", "its files have changed since the agent proposed it: have the agent propose it again")
	}
	shown.Strangers = shown.Strangers || found.Strangers
	return shown, err
}

func (p *Proposals) show(w *exchange.Answer, r *http.Request) error {
	shown, err := p.requestedFiles(w, r)
	if err != nil {
		return err
	}
	return w.JSON(http.StatusOK, shown)
}

// accept puts a proposed skill with the operator's, so that agents get it.
func (p *Proposals) accept(w *exchange.Answer, r *http.Request) error {
	hash, err := w.ReadText(r, "hash")
	if err != nil {
		return err
	}
	shown, err := p.requestedFiles(w, r)
	if err != nil {
		return err
	}
	if shown.Hash != hash {
		return exchange.Conflict("changed", "it isn't the one that you looked at: look at it again")
	}
	place, err := install(p.operatorsFolder(), shown)
	if err != nil {
		return err
	}
	if err := p.notes.SetNote(r.Context(), proposedSubject, shown.Session, ""); err != nil {
		return err
	}
	if err := p.reread(); err != nil {
		return err
	}
	return w.JSON(http.StatusOK, map[string]string{"name": shown.Name, "folder": place})
}

// operatorsFolder returns the folder into which accepted skills go.
func (p *Proposals) operatorsFolder() string {
	settings := p.skills.catalog.Load().settings
	if len(settings.Skills.Dirs) > 0 {
		return settings.Skills.Dirs[0]
	}
	return filepath.Join(settings.Home, Folder)
}

// refuse drops a proposal. The skill stays in the session's workspace.
func (p *Proposals) refuse(w *exchange.Answer, r *http.Request) error {
	found, err := p.requestedProposal(w, r)
	if err != nil {
		return err
	}
	if err := p.notes.SetNote(r.Context(), proposedSubject, found.Session, ""); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
