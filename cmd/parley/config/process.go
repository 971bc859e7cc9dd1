package config

import (
	"log/slog"
	"time"

	"parley/cmd/parley/config/schema"
)

// Serve says how the server runs.
type Serve struct {
	Drain       time.Duration // how long a shutdown waits for running turns
	MaxInFlight int           // how many turns may run at once in this process
}

// serveSection declares the settings for how the server runs.
func serveSection() section {
	return section{Section: schema.Section{Name: "serve", Settings: []schema.Setting{
		{Key: "drain", Kind: schema.Duration, Default: 10 * time.Second, Least: int64(time.Millisecond), Fill: schema.Into(func(s *Serve) any { return &s.Drain })},
		{Key: "max_in_flight", Kind: schema.Count, Default: int64(4096), Least: 1, Fill: schema.Into(func(s *Serve) any { return &s.MaxInFlight })},
	}}}
}

// Log says how the program logs.
type Log struct {
	Level  slog.Level
	Format string // "text", "json", or "": text on a terminal, else JSON
}

// logSection declares the settings of the log.
func logSection() section {
	return section{Section: schema.Section{Name: "log", Settings: []schema.Setting{
		{Key: "level", Kind: schema.Text, Default: "info", OneOf: []string{"debug", "info", "warn", "error"}, Fill: schema.Into(func(l *Log) any { return &l.Level })},
		{Key: "format", Kind: schema.Text, OneOf: []string{"text", "json"}, Example: `"json"`, Fill: schema.Into(func(l *Log) any { return &l.Format })},
	}}}
}
