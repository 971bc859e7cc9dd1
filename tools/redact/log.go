package redact

import (
	"context"
	"fmt"
	"log/slog"
)

// Handler wraps a log handler, and removes secrets from each record. It calls redactor for each
// record, because the secrets may change while the program runs.
func Handler(to slog.Handler, redactor func() *Redactor) slog.Handler {
	return &handler{to, redactor}
}

type handler struct {
	slog.Handler
	redactor func() *Redactor
}

// Handle removes the secrets from a record and passes it on.
func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	redactor := h.redactor()
	clean := slog.NewRecord(r.Time, r.Level, redactor.Text(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		clean.AddAttrs(redactAttr(redactor, a))
		return true
	})
	return h.Handler.Handle(ctx, clean)
}

// WithAttrs implements slog.Handler: it removes the secrets from the attributes first.
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	redactor := h.redactor()
	clean := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		clean[i] = redactAttr(redactor, a)
	}
	return &handler{h.Handler.WithAttrs(clean), h.redactor}
}

// WithGroup implements slog.Handler: it returns a handler that also removes secrets from the
// attributes in the group.
func (h *handler) WithGroup(name string) slog.Handler {
	return &handler{h.Handler.WithGroup(name), h.redactor}
}

// redactAttr returns an attribute without secrets.
func redactAttr(r *Redactor, a slog.Attr) slog.Attr {
	switch v := a.Value.Resolve(); v.Kind() {
	case slog.KindString:
		return slog.String(a.Key, r.Text(v.String()))
	case slog.KindGroup:
		var all []any
		for _, inner := range v.Group() {
			all = append(all, redactAttr(r, inner))
		}
		return slog.Group(a.Key, all...)
	case slog.KindAny:
		if text := fmt.Sprint(v.Any()); r.Text(text) != text {
			return slog.String(a.Key, r.Text(text))
		}
	}
	return a
}
