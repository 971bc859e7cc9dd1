package server

import (
	"strings"
	"testing"
)

// Agents never see a home's token, from the first start on.
func TestANewHomesTokenIsASecret(t *testing.T) {
	s := newTestServer(t, "")
	if err := s.agents.guard.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.front.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := s.agents.guard.secrets.Load().Text("it is " + s.front.token + " here"); strings.Contains(got, s.front.token) || !strings.Contains(got, "it is") {
		t.Errorf("an agent reads %q", got)
	}
}
