package config

import (
	"parley/cmd/parley/config/schema"
)

// Skills says where the operator keeps skills, and which of them agents get.
type Skills struct {
	Dirs    []string // absolute; nil means the folder skills in the home, if it exists
	Off     []string // the skills that no agent gets
	Trusted []string // the skills whose content counts as the operator's own
	// Propose lets agents propose skills that they have written, which an owner has to accept.
	Propose bool
}

// skillsSection declares the settings of skills.
func skillsSection() section {
	return section{Section: schema.Section{Name: "skills", Settings: []schema.Setting{
		{Key: "dirs", Kind: schema.Paths, Example: `["skills"]`, Reload: schema.AtOnce, Fill: schema.Into(func(s *Skills) any { return &s.Dirs })},
		{Key: "off", Kind: schema.Texts, Default: []string{}, Example: `["reports"]`, Reload: schema.AtOnce, Fill: schema.Into(func(s *Skills) any { return &s.Off })},
		{Key: "trusted", Kind: schema.Texts, Default: []string{}, Example: `["reports"]`, Reload: schema.AtOnce, Fill: schema.Into(func(s *Skills) any { return &s.Trusted })},
		{Key: "propose", Kind: schema.Truth, Default: false, Reload: schema.AtOnce, Fill: schema.Into(func(s *Skills) any { return &s.Propose })},
	}}}
}
