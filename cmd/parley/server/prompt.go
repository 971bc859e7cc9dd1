package server

import (
	"context"
	"log/slog"
	"os"
	"slices"

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
	memories  *home.TurnMemories
	abilities platforms.KnownAbilities
	cache     prompt.Cache
}

// Clear forgets what sessions' files contained.
func (p *prompts) Clear() { p.cache.Clear() }

// build returns the beginning of a session's prompt: what the operator has written in the settings, the home and the
// skills, where the conversation takes place, what is written in the session's workspace, the names of the operator's
// documents, and in a private chat what the operator has written about the person. A model that accepts no tools is
// told of no skills and documents. Agent.Untrusted says whether strangers may have written some of that.
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
	var place []prompt.File
	if node := settings.Agents[sessions.AgentOf(session)].Node(); node != "" && !toolless {
		place, knows = []prompt.File{prompt.OfNode(node)}, nil // its tools don't reach the operator's documents
	}
	files, set := os.DirFS(settings.Home), settings.Agents[sessions.AgentOf(session)]
	return prompt.Builder{Cache: &p.cache, Toolless: toolless, Instructions: set.Prompt, Sources: []prompt.Source{
		func(context.Context, string) ([]prompt.File, error) {
			return append(prompt.Read(files, "home", "AGENTS.md", "SOUL.md"), prompt.File{Name: "skills", From: "operator", Text: ofOperator}), nil
		},
		func(_ context.Context, session string) ([]prompt.File, error) {
			files, err := p.home.WorkspaceFiles(session)
			if err != nil {
				return nil, home.Unusable(p.home.RootOf(session), err)
			}
			all := append(append([]prompt.File{p.placeOf(who)}, place...), prompt.Read(files, "workspace", "AGENTS.md")...)
			return append(all, prompt.File{Name: "skills", From: "workspace", Text: ofSession}), nil
		},
		func(context.Context, string) ([]prompt.File, error) {
			return slices.Concat(knows, prompt.OfPerson(files, who.Person, who.Private)), nil
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

// memory returns the memories for an agent's prompt: those of the session, of all conversations and, if nobody else
// reads along, about the person. The bool reports whether strangers may have written some of them; for the session's
// file, Agent.Untrusted reports that.
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
	for _, f := range prompt.Read(files, "workspace", memory.File) {
		all = append(all, transcript.Memory{Scope: "session", Whose: "this conversation", File: f.Name, Text: f.Shown()})
	}
	return append(all,
		transcript.Memory{Scope: channels.ScopeAgent, Whose: "all your conversations (scope agent)", Text: prompt.File{Name: "this memory", Text: ofAgent.Content}.Shown()},
		transcript.Memory{Scope: channels.ScopePerson, Whose: "the person you're talking to (scope person)", Text: prompt.File{Name: "this memory", Text: ofPerson.Content}.Shown()},
	), ofAgent.Untrusted || ofPerson.Untrusted, nil
}
