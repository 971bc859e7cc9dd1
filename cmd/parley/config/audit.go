package config

import (
	"parley/cmd/parley/config/schema"
)

// Audit says where records of what was done are kept, besides the store, and for how long.
type Audit struct {
	File  string // absolute; "" means none
	Days  int    // how many days records are kept, in the file and in the store
	MaxMB int    // of the file and the rotated files together
}

// auditSection declares the settings of the audit.
func auditSection() section {
	return section{Section: schema.Section{Name: "audit", Settings: []schema.Setting{
		{Key: "file", Kind: schema.Path, Example: `"audit.jsonl"`, Fill: schema.Into(func(a *Audit) any { return &a.File })},
		{Key: "days", Kind: schema.Count, Default: int64(7), Least: 1, Fill: schema.Into(func(a *Audit) any { return &a.Days })},
		{Key: "max_mb", Kind: schema.Count, Default: int64(100), Least: 1, Fill: schema.Into(func(a *Audit) any { return &a.MaxMB })},
	}}}
}
