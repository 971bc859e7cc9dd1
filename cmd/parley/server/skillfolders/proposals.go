package skillfolders

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"parley/channels"
	"parley/cmd/parley/api/exchange"
	"parley/sessions"
	"parley/tools"
	"parley/tools/guard"
	"parley/tools/skills"
	"parley/tools/skills/folder"
)

// noteProposed is the subject of the notes about proposed skills. Each note is about a session, whose
// workspace contains the skill, so a proposal is erased with the session.
const noteProposed = "skill proposed"

// Limits of a proposed skill, so that an owner can look at all of it.
const (
	maxProposedFiles = 50
	maxProposedBytes = 512 << 10
)

// A Proposal is a skill that an agent has written and that waits until an owner accepts it.
type Proposal struct {
	Name    string `json:"name"`
	Session string `json:"session"` // the session whose workspace contains it
	Hash    string `json:"hash"`    // of its files, as they were proposed
	// Strangers says that strangers may have written some of it.
	Strangers bool `json:"strangers"`
}

// A ShownProposal is a proposal with all its files.
type ShownProposal struct {
	Proposal
	Files []ProposedFile `json:"files"`
}

// A ProposedFile is a file of a proposed skill.
type ProposedFile struct {
	Path       string `json:"path"` // below the skill's folder
	Executable bool   `json:"executable"`
	Text       string `json:"text"`
}

// Proposals are the skills that agents propose.
type Proposals struct {
	skills *Skills
	notes  channels.Notes
	tell   func(ctx context.Context, subject, text string)
	reread func() error // reads the operator's skills again
}

// NewProposals makes Proposals. tell tells the owners; reread reads the operator's skills again.
func NewProposals(s *Skills, notes channels.Notes, tell func(ctx context.Context, subject, text string), reread func() error) *Proposals {
	return &Proposals{s, notes, tell, reread}
}

// Propose records that the skill with this name in the workspace of a call's session is proposed,
// and tells the owners.
func (p *Proposals) Propose(ctx context.Context, call tools.Call, name string) error {
	found, err := p.look(call.Session, name)
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
	if err := p.notes.SetNote(ctx, noteProposed, call.Session, found.Hash+" "+name+strangers); err != nil {
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

// look reads a skill of a session's workspace with all its files. If the skill cannot be proposed, the error is a
// *tools.Error, which the model is told.
func (p *Proposals) look(session, name string) (ShownProposal, error) {
	shown := ShownProposal{Proposal: Proposal{Name: name, Session: session}, Files: []ProposedFile{}}
	files, err := p.skills.cfg.Workspace(session)
	if err != nil {
		return shown, err
	}
	place := path.Join(Folder, name)
	skill, problem := folder.Read(files, place)
	if problem != nil {
		return shown, tools.Errorf(tools.InvalidArgs, "%s", problem.Error())
	}
	marks, left := guard.ReadMarks(files), maxProposedBytes
	shown.Strangers = marks.All
	err = folder.Walk(skill.Files, func(file string, e fs.DirEntry) error {
		if e.IsDir() {
			return nil
		}
		one, err := readProposed(skill.Files, file)
		if err != nil {
			return err
		}
		if left -= len(one.Text); left < 0 || len(shown.Files) == maxProposedFiles {
			return tools.Errorf(tools.InvalidArgs, "%s has more than %d files or %d KB, which is too much to review: remove what it doesn't need", place, maxProposedFiles, maxProposedBytes>>10)
		}
		shown.Strangers = shown.Strangers || marks.Has(path.Join(place, file))
		shown.Files = append(shown.Files, one)
		return nil
	})
	if err != nil {
		return shown, err
	}
	shown.Hash, err = skill.Hash()
	return shown, err
}

// readProposed reads a file of a proposed skill, which has to be text that an owner can read.
func readProposed(files fs.FS, name string) (one ProposedFile, err error) {
	info, err := fs.Stat(files, name)
	if err == nil && info.Size() > maxProposedBytes {
		err = tools.Errorf(tools.InvalidArgs, "%s is larger than %d KB", name, maxProposedBytes>>10)
	}
	if err != nil {
		return one, err
	}
	raw, err := fs.ReadFile(files, name)
	if err != nil {
		return one, err
	}
	if !utf8.Valid(raw) || strings.ContainsRune(string(raw), 0) {
		return one, tools.Errorf(tools.InvalidArgs, "%s isn't text, so nobody could look at it: remove it", name)
	}
	return ProposedFile{Path: name, Executable: info.Mode()&0o111 != 0, Text: string(raw)}, nil
}

// Waiting returns the proposals that wait for an owner.
func (p *Proposals) Waiting(ctx context.Context) ([]Proposal, error) {
	notes, err := p.notes.AllNoted(ctx, noteProposed)
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

// named returns the proposal that a request names, by its name and, if several conversations propose
// a skill with that name, its session.
func (p *Proposals) named(w *exchange.Answer, r *http.Request) (found Proposal, err error) {
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
		return found, exchange.NotFound("no skill by that name has been proposed: parley skills, or GET /v1/skills/proposals, lists those that have been")
	case 1:
		return all[0], nil
	}
	return found, exchange.Conflict("several", fmt.Sprintf("%d conversations have proposed a skill by that name: add the session, as shown in the list", len(all)))
}

// shown returns the proposal that a request names with its files, as long as they are as proposed.
func (p *Proposals) shown(w *exchange.Answer, r *http.Request) (ShownProposal, error) {
	found, err := p.named(w, r)
	if err != nil {
		return ShownProposal{}, err
	}
	shown, err := p.look(found.Session, found.Name)
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
	shown, err := p.shown(w, r)
	if err != nil {
		return err
	}
	return w.JSON(http.StatusOK, shown)
}

// accept puts a proposed skill with the operator's, so that agents get it.
func (p *Proposals) accept(w *exchange.Answer, r *http.Request) error {
	var asked struct{ Hash string }
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 4<<10)).Decode(&asked); err != nil || asked.Hash == "" {
		return exchange.BadRequest("bad_request", `the body must be {"hash": "the one that it was shown with"}`)
	}
	shown, err := p.shown(w, r)
	if err != nil {
		return err
	}
	if shown.Hash != asked.Hash {
		return exchange.Conflict("changed", "it isn't the one that you looked at: look at it again")
	}
	place, err := p.install(shown)
	if err != nil {
		return err
	}
	if err := p.notes.SetNote(r.Context(), noteProposed, shown.Session, ""); err != nil {
		return err
	}
	if err := p.reread(); err != nil {
		return err
	}
	return w.JSON(http.StatusOK, map[string]string{"name": shown.Name, "folder": place})
}

// refuse drops a proposal. The skill stays in the session's workspace.
func (p *Proposals) refuse(w *exchange.Answer, r *http.Request) error {
	found, err := p.named(w, r)
	if err != nil {
		return err
	}
	if err := p.notes.SetNote(r.Context(), noteProposed, found.Session, ""); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// install writes a skill into the operator's folder, whole or not at all, and returns its folder
// there. Installing it again does nothing.
func (p *Proposals) install(s ShownProposal) (string, error) {
	settings := p.skills.catalog.Load().settings
	dir := filepath.Join(settings.Home, Folder)
	if len(settings.Skills.Dirs) > 0 {
		dir = settings.Skills.Dirs[0]
	}
	place := filepath.Join(dir, s.Name)
	if _, err := os.Lstat(place); err == nil {
		if sum, err := (folder.Skill{Name: s.Name, Files: os.DirFS(place)}).Hash(); err == nil && sum == s.Hash {
			return place, nil // a process died after it had installed it
		}
		return "", exchange.Conflict("taken", place+" already exists: move it away, or have the agent propose "+s.Name+"-v2")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	made, err := os.MkdirTemp(dir, ".proposed-") // a hidden folder is not a skill
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(made) }() // after the rename it is gone
	for _, f := range s.Files {
		if err := writeFile(made, f); err != nil {
			return "", err
		}
	}
	if err := os.Chmod(made, 0o755); err != nil {
		return "", err
	}
	return place, os.Rename(made, place)
}

// writeFile writes a file of a proposed skill below a folder, readable for the user that commands
// run as.
func writeFile(dir string, f ProposedFile) error {
	file, mode := filepath.Join(dir, filepath.FromSlash(f.Path)), fs.FileMode(0o644)
	if f.Executable {
		mode = 0o755
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(file, []byte(f.Text), mode); err != nil {
		return err
	}
	return os.Chmod(file, mode) // whatever the umask is
}
