package server

import (
	"context"
	"fmt"
	"strings"

	"parley/agent/prompt"
	"parley/cmd/parley/config"
	"parley/tools/knowledge"
)

// maxKnowledgeNames is how many names of the operator's knowledge folder a prompt lists.
const maxKnowledgeNames = 50

// knowledgeFolder is the operator's folder that agents read, if one is configured.
type knowledgeFolder struct {
	foundation
	base *knowledge.Base // nil if none is configured, and before Load
}

// Load opens the folder, in a process that runs turns.
func (k *knowledgeFolder) Load(context.Context) (err error) {
	if k.role.Works() {
		k.base, err = openKnowledge(k.settings.Load())
	}
	return err
}

// openKnowledge opens the operator's folder; nil if none is configured.
func openKnowledge(c *config.Config) (*knowledge.Base, error) {
	if c.Knowledge.Dir == "" {
		return nil, nil
	}
	base, err := knowledge.Open(c.Knowledge.Dir)
	if err != nil {
		return nil, &config.SettingError{Where: c.Origin("knowledge.dir"), Key: "knowledge.dir", Remedy: fmt.Sprintf("it can't be read (%v): create the folder, or name another", err)}
	}
	return base, nil
}

// Close closes the folder.
func (k *knowledgeFolder) Close() error {
	if k.base == nil {
		return nil
	}
	return k.base.Close()
}

// describe returns, as a file for the prompt, a list of the files in the folder; none if there is no such folder.
func (k *knowledgeFolder) describe() []prompt.File {
	if k.base == nil {
		return nil
	}
	names, more := k.base.Names(maxKnowledgeNames)
	text := textKnowledge(knowledge.Folder, strings.Join(names, "\n- "))
	if more {
		text += "\n- and more"
	}
	return []prompt.File{{Name: knowledge.Folder + "/", From: "operator", Text: text}}
}
