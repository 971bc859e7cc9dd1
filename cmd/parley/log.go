package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"parley/cmd/parley/config"
	"parley/cmd/parley/terminal"
)

// newLogger returns a logger that writes text to a terminal and JSON elsewhere, unless
// the format is configured.
func newLogger(cfg *config.Config, out io.Writer) *slog.Logger {
	o := &slog.HandlerOptions{Level: cfg.Log.Level, ReplaceAttr: formatDurations}
	if logsText(cfg, out) {
		return slog.New(slog.NewTextHandler(out, o))
	}
	return slog.New(slog.NewJSONHandler(out, o))
}

// logsText reports whether the log is text rather than JSON.
func logsText(cfg *config.Config, out io.Writer) bool {
	if _, ok := out.(*os.File); ok && cfg.Log.Format == "" {
		return terminal.IsTerminal(out)
	}
	return cfg.Log.Format == "text"
}

// tellOperator writes a text for the person who runs the server, whatever the log level. In a JSON
// log the text becomes a JSON record, too, because programs that read the log fail on anything
// else.
func tellOperator(cfg *config.Config, out io.Writer, text string) {
	if logsText(cfg, out) {
		fmt.Fprintf(out, "\n%s\n\n", text)
		return
	}
	slog.New(slog.NewJSONHandler(out, nil)).Info("for the operator", slog.String("text", text))
}

// formatDurations makes a log write durations the way people do, such as 1.5s; in JSON they would
// be numbers of nanoseconds.
func formatDurations(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		return slog.String(a.Key, a.Value.Duration().String())
	}
	return a
}

// errorLogger returns the logger for commands whose output is their result: it logs only errors.
func errorLogger(out io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{
		Level: slog.LevelError,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.String(slog.TimeKey, a.Value.Time().Format(time.TimeOnly))
			}
			return a
		},
	}))
}
