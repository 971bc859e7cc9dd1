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
	"parley/agent/transcript"
	"parley/channels"
	"parley/channels/console"
	"parley/cmd/parley/data/home"
	"parley/cmd/parley/server/platforms"
	"parley/sessions"
	"parley/tools/memory"
)

// prompts makes agents' prompts: the text before each conversation.
type prompts struct {
	foundation
	chains    *modelChains
	skills    *agentSkills
	knowledge *knowledgeFolder
	memories  *home.Memories
	abilities platforms.KnownAbilities
	cache     prompt.Cache
}

// Clear forgets what sessions' files contained.
func (p *prompts) Clear() { p.cache.Clear() }

// build returns the beginning of a session's prompt: what the operator has written in the home, and what is written
// in the session's workspace. Agent.Untrusted says whether strangers may have written some of that.
func (p *prompts) build(ctx context.Context, who agent.Asker) (string, error) {
	session := who.Session
	ofOperator, ofSession, err := p.skills.Prompt(session)
	if err != nil {
		return "", home.Unusable(p.home.RootOf(session), err)
	}
	knows := p.knowledge.describe()
	model := p.chains.byAgent[sessions.AgentOf(session)]
	toolless := model != nil && model.Info().Toolless
	if toolless { // without tools, the model could read none of them
		ofOperator, ofSession, knows = "", "", nil
	}
	settings := p.settings.Load()
	files, set := os.DirFS(settings.Home), settings.Agents[sessions.AgentOf(session)]
	return prompt.Builder{Cache: &p.cache, Toolless: toolless, Instructions: set.Prompt, Sources: []prompt.Source{
		func(context.Context, string) ([]prompt.File, error) {
			return append(prompt.Read(opener(files), "home", "AGENTS.md", "SOUL.md"), prompt.File{Name: "skills", From: "operator", Text: ofOperator}), nil
		},
		func(_ context.Context, session string) ([]prompt.File, error) {
			files, err := p.home.WorkspaceFiles(session)
			if err != nil {
				return nil, home.Unusable(p.home.RootOf(session), err)
			}
			all := append([]prompt.File{p.placeOf(who)}, prompt.Read(opener(files), "workspace", "AGENTS.md")...)
			return append(all, prompt.File{Name: "skills", From: "workspace", Text: ofSession}), nil
		},
		func(context.Context, string) ([]prompt.File, error) {
			return slices.Concat(knows, personFiles(files, who)), nil
		},
	}}.Build(ctx, session)
}

// placeOf returns what the prompt says about the chat in which a conversation takes place. It depends only on the
// session's key and the settings, so that the prompt is the same in each turn and providers can cache it.
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

// personFiles returns what the operator has written about the person that the agent talks to, in the home in
// users/CHANNEL:USER.md. Nobody else may read it, so only private chats get it.
func personFiles(files fs.FS, who agent.Asker) []prompt.File {
	if !who.Private || who.Person == "" || strings.ContainsAny(who.Person, "/\\") {
		return nil
	}
	all := prompt.Read(opener(files), "operator, about the person you're talking to", path.Join("users", who.Person+".md"))
	for i := range all {
		all[i].Name = "USER.md"
	}
	return all
}

// memory returns what an agent remembers: in the session, in all conversations and, if nobody else reads along,
// about the person. The bool reports whether strangers may have written some of it; for the session's file,
// Agent.Untrusted says that.
func (p *prompts) memory(ctx context.Context, who agent.Asker) (all []transcript.Memory, untrusted bool, err error) {
	person := who.Person
	if !who.Private {
		person = ""
	}
	ofAgent, ofPerson, err := p.memories.For(ctx, who.Session, who.Turn, sessions.AgentOf(who.Session), person)
	if err != nil {
		return nil, false, err
	}
	files, err := p.home.WorkspaceFiles(who.Session)
	if err != nil {
		return nil, false, home.Unusable(p.home.RootOf(who.Session), err)
	}
	for _, f := range prompt.Read(opener(files), "workspace", memory.File) {
		all = append(all, transcript.Memory{Scope: "session", Of: "this conversation", File: f.Name, Text: f.Shown()})
	}
	return append(all,
		transcript.Memory{Scope: channels.OfAgent, Of: "all your conversations (scope agent)", Text: prompt.File{Name: "this memory", Text: ofAgent.Content}.Shown()},
		transcript.Memory{Scope: channels.OfPerson, Of: "the person you're talking to (scope person)", Text: prompt.File{Name: "this memory", Text: ofPerson.Content}.Shown()},
	), ofAgent.Untrusted || ofPerson.Untrusted, nil
}

// opener adapts a file system's Open for prompt.Read.
func opener(files fs.FS) func(string) (io.ReadCloser, error) {
	return func(name string) (io.ReadCloser, error) { return files.Open(name) }
}
