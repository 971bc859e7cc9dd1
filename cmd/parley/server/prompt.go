package server

import (
	"context"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"slices"
	"strings"

	"parley/agent"
	"parley/agent/prompt"
	"parley/channels/console"
	"parley/cmd/parley/data/home"
	"parley/cmd/parley/server/platforms"
	"parley/sessions"
)

// prompts makes the prompts of agents: what stands before each conversation.
type prompts struct {
	foundation
	chains    *modelChains
	skills    *agentSkills
	knowledge *knowledgeFolder
	memories  *home.Memories
	abilities platforms.KnownAbilities
	cache     prompt.Cache
}

// Clear forgets what sessions' files have said.
func (p *prompts) Clear() { p.cache.Clear() }

// build returns the beginning of a session's prompt: what the operator has written in the
// home, what is written in the session's workspace, and the agent's memory. The bool reports
// whether strangers may have written some of the memory.
func (p *prompts) build(ctx context.Context, who agent.Asker) (string, bool, error) {
	session := who.Session
	remembered, untrusted, err := p.memoryFiles(ctx, who)
	if err != nil {
		return "", false, err
	}
	ofOperator, ofSession, err := p.skills.Prompt(session)
	if err != nil {
		return "", false, home.Unusable(p.home.RootOf(session), err)
	}
	knows := p.knowledge.describe()
	model := p.chains.byAgent[sessions.AgentOf(session)]
	toolless := model != nil && model.Info().Toolless
	if toolless { // it could read neither
		ofOperator, ofSession, knows = "", "", nil
	}
	settings := p.settings.Load()
	files, set := os.DirFS(settings.Home), settings.Agents[sessions.AgentOf(session)]
	made, err := prompt.Builder{Cache: &p.cache, Toolless: toolless, Instructions: set.Prompt, Sources: []prompt.Source{
		func(context.Context, string) ([]prompt.File, error) {
			return append(prompt.Read(opener(files), "home", "AGENTS.md", "SOUL.md"), prompt.File{Name: "skills", From: "operator", Text: ofOperator}), nil
		},
		func(_ context.Context, session string) ([]prompt.File, error) {
			files, err := p.home.WorkspaceFiles(session)
			if err != nil {
				return nil, home.Unusable(p.home.RootOf(session), err)
			}
			all := append([]prompt.File{p.placeOf(who)}, prompt.Read(opener(files), "workspace", "AGENTS.md")...)
			all = append(all, prompt.File{Name: "skills", From: "workspace", Text: ofSession})
			return append(all, prompt.Read(opener(files), "workspace", "MEMORY.md")...), nil
		},
		func(context.Context, string) ([]prompt.File, error) {
			return slices.Concat(knows, personFiles(files, who), remembered), nil
		},
	}}.Build(ctx, session)
	return made, untrusted, err
}

// placeOf returns what the prompt says about the chat in which a conversation takes place. It
// depends only on the session's key and the settings, so that the prompt is the same in each turn
// and providers can cache it.
func (p *prompts) placeOf(who agent.Asker) prompt.File {
	key, err := sessions.ParseKey(who.Session)
	if err != nil {
		return prompt.File{}
	}
	if key.Channel == console.Name {
		return prompt.Place{Channel: console.Name, Platform: "a terminal", Private: true}.File()
	}
	can, err := p.abilities.Of(p.settings.Load(), key.Channel)
	if err != nil {
		p.log.Warn("agents are not told what a channel can do", slog.String("channel", key.Channel), slog.Any("error", err))
	}
	return prompt.Place{
		Channel: key.Channel, Platform: can.Title, Private: who.Private, Thread: key.Thread != "",
		Length: can.Length, Files: can.Files, Buttons: can.Buttons, Edits: can.Edits,
	}.File()
}

// personFiles returns what the operator has written about the person whom the agent talks
// to, in the home in users/CHANNEL:USER.md. Nobody else may read it, so only private
// chats get it.
func personFiles(files fs.FS, who agent.Asker) []prompt.File {
	if !who.Private || who.Person == "" || strings.ContainsAny(who.Person, "/\\") {
		return nil
	}
	all := prompt.Read(opener(files), "whom you talk to, by the operator", path.Join("users", who.Person+".md"))
	for i := range all {
		all[i].Name = "USER.md"
	}
	return all
}

// memoryFiles returns the memory beyond the session that the prompt holds: the agent's,
// and the person's where nobody else reads along. The bool reports whether strangers may
// have written some of it.
func (p *prompts) memoryFiles(ctx context.Context, who agent.Asker) (files []prompt.File, untrusted bool, err error) {
	person := who.Person
	if !who.Private {
		person = ""
	}
	ofAgent, ofPerson, err := p.memories.For(ctx, who.Session, who.Turn, sessions.AgentOf(who.Session), person)
	if err != nil {
		return nil, false, err
	}
	return []prompt.File{
		{Name: "MEMORY.md", From: "what you remember in all conversations (scope agent)", Text: ofAgent.Content},
		{Name: "MEMORY.md", From: "what you remember of whom you talk to (scope person)", Text: ofPerson.Content},
	}, ofAgent.Untrusted || ofPerson.Untrusted, nil
}

// opener adapts a file system's Open for prompt.Read.
func opener(files fs.FS) func(string) (io.ReadCloser, error) {
	return func(name string) (io.ReadCloser, error) { return files.Open(name) }
}
