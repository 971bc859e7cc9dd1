package config

import (
	"parley/cmd/parley/config/schema"
)

// Recall says what else is done with what was said in conversations.
type Recall struct {
	// Propose lets models propose what is worth remembering of long conversations in private chats.
	Propose bool
}

// recallSection declares the settings of recall.
func recallSection() section {
	return section{Section: schema.Section{Name: "recall", Settings: []schema.Setting{
		{Key: "propose", Kind: schema.Truth, Default: false, Reload: schema.AtOnce, Fill: schema.Into(func(r *Recall) any { return &r.Propose })},
	}}}
}
