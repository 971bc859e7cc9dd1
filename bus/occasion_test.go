package bus_test

import (
	"testing"

	"parley/bus"
)

// The caller that was authenticated determines for whom a turn begins and what it may see, whatever the message
// itself says.
func TestMailIsForItsCallerAlone(t *testing.T) {
	rash := bus.Inbound{ID: "1", Kind: bus.Scheduled, From: bus.Person{ID: "telegram:1", Owner: true}, Private: true, Text: "look"}
	got := bus.Program("webhook:alerts").Mail(rash)
	if got.From != (bus.Person{ID: "webhook:alerts"}) || got.Private || !got.Group || got.Text != "look" || got.ID != "1" {
		t.Errorf("of a program it is %+v", got)
	}
	alone := bus.Caller{Person: bus.Person{ID: "telegram:2", Name: "Ann"}, Private: true}
	if got := alone.Mail(bus.Inbound{Group: true}); got.From != alone.Person || !got.Private || got.Group || !got.Mentioned {
		t.Errorf("of somebody alone it is %+v", got)
	}
	if got := (bus.Caller{Person: alone.Person}).Mail(rash); got.Private || !got.Group {
		t.Errorf("where others read along it is %+v", got)
	}
}
