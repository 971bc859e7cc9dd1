package home

import (
	"context"
	"log/slog"
	"testing"

	"parley/bus"
	"parley/cmd/parley/config"
	"parley/sessions"
)

// Where the bus and the store share the home's file, what a log publishes is on the bus with its
// entries.
func TestTheLogsOfAHomePublish(t *testing.T) {
	dir := t.TempDir()
	c := &config.Config{Home: dir}
	c.Workspace.Root, c.Workspace.MaxMB = dir+"/workspaces", 1
	h, err := Open(t.Context(), c, WorkspaceOverride{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	const key = "main:telegram:42"
	log, err := h.Store.Open(t.Context(), key, 1)
	if err != nil {
		t.Fatal(err)
	}
	publisher, ok := log.(sessions.Publisher)
	if !ok {
		t.Fatalf("%T is no Publisher", log)
	}
	mail := sessions.Mail{Topic: string(bus.OutboundTopic("telegram")), Key: "telegram:42", ID: "m1#reply", Body: []byte("hello")}
	if log, ok = publisher.Publishing(mail); !ok {
		t.Fatal("the home's logs do not publish")
	}
	entry, err := sessions.NewEntry("m1", sessions.KindTurnDone, sessions.TurnDone{State: sessions.TurnCompleted})
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Append(t.Context(), 1, entry); err != nil {
		t.Fatal(err)
	}
	lease, err := h.Bus.Claim(t.Context(), bus.OutboundTopic("telegram"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := lease.Mail(t.Context(), 0)
	if err != nil || len(got) != 1 || got[0].ID != mail.ID || got[0].Key != mail.Key || string(got[0].Body) != "hello" {
		t.Errorf("on the bus is %+v, %v", got, err)
	}
	if err := lease.Settle(context.WithoutCancel(t.Context()), bus.End{Done: got[0].Seq}); err != nil {
		t.Error(err)
	}
}
