package config

// Audit is where it is recorded what was done, beside the store.
type Audit struct {
	File  string // absolute; "" is none
	Days  int    // that records are kept, there and in the store
	MaxMB int    // of the file, with those that were set aside
}

// auditSections are the settings of the audit.
func auditSections() []section {
	return []section{
		{name: "audit", settings: []setting{
			{key: "file", kind: asPath, example: `"audit.jsonl"`, since: first, fills: into(func(c *Config) any { return &c.Audit.File })},
			{key: "days", kind: asCount, def: int64(7), least: 1, since: first, fills: into(func(c *Config) any { return &c.Audit.Days })},
			{key: "max_mb", kind: asCount, def: int64(100), least: 1, since: first, fills: into(func(c *Config) any { return &c.Audit.MaxMB })},
		}},
	}
}
