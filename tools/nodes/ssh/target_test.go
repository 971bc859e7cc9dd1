package ssh_test

import (
	"errors"
	"testing"

	"parley/tools/nodes/ssh"
)

func TestTargets(t *testing.T) {
	for text, c := range map[string]struct {
		target ssh.Target
		name   string
	}{
		"ssh://deploy@db1":                       {ssh.Target{User: "deploy", Host: "db1"}, "ssh-deploy-db1"},
		"ssh://ops_1@db1.example.com:2222":       {ssh.Target{User: "ops_1", Host: "db1.example.com", Port: 2222}, "ssh-ops-1-db1-example-com-2222"},
		"ssh://Me@10.0.0.7/opt/my.bin/parley":    {ssh.Target{User: "Me", Host: "10.0.0.7", Program: "/opt/my.bin/parley"}, "ssh-me-10-0-0-7"},
		"ssh://a@[2001:db8::1]":                  {ssh.Target{User: "a", Host: "2001:db8::1"}, "ssh-a-2001-db8--1"},
		"ssh://a@[2001:db8::1]:22/usr/bin/p":     {ssh.Target{User: "a", Host: "2001:db8::1", Port: 22, Program: "/usr/bin/p"}, "ssh-a-2001-db8--1-22"},
		"ssh://deploy@a-very-long-name.example.": {},
		"ssh://deploy@a-very-long-name.example.com": {
			ssh.Target{User: "deploy", Host: "a-very-long-name.example.com"}, "ssh-deploy-a-very-long-na-1a7ccc",
		},
	} {
		got, err := ssh.Parse(text)
		if c.name == "" {
			if !errors.Is(err, ssh.ErrTarget) {
				t.Errorf("%s: %+v", text, got)
			}
			continue
		}
		if err != nil || got != c.target || got.String() != text || got.Name() != c.name {
			t.Errorf("%s: %+v, %v, %q, named %q", text, got, err, got, got.Name())
		}
	}
}

// A text that ssh could take for an option, or a shell for more than a word, is not a target.
func TestTextsThatAreNoTargets(t *testing.T) {
	for _, text := range []string{
		"", "ssh://", "ssh://host", "ssh://@host", "ssh://user@", "user@host", "SSH://user@host", "http://user@host",
		"ssh://-oProxyCommand=x@host", "ssh://user@-oProxyCommand=x", "ssh://-l@host", "ssh://user@host-", "ssh://user:secret@host",
		"ssh://user@host:0", "ssh://user@host:022", "ssh://user@host:65536", "ssh://user@host:", "ssh://user@host:-1", "ssh://user@host:+1", "ssh://user@a:b:1",
		"ssh://user@host/", "ssh://user@host/bin/parley;id", "ssh://user@host/bin/par ley", "ssh://user@host/$(id)", "ssh://user@host/`id`", "ssh://user@host//x", "ssh://user@host/a?b", "ssh://user@host?a", "ssh://user@host#a",
		"ssh://us er@host", "ssh://user@ho st", "ssh://user@host\n", "ssh://user\n@host", "ssh://user@host;id", "ssh://user@$(id)", "ssh://user@HOST", "ssh://user@2001:db8::1",
		"ssh://user@[host]", "ssh://user@[fe80::1%eth0]", "ssh://user@[::1", "ssh://user@::1]", "ssh://user@[10.0.0.1]", "ssh://user@a@host", "ssh://%75ser@host", "ssh://user@%68ost",
	} {
		if got, err := ssh.Parse(text); !errors.Is(err, ssh.ErrTarget) {
			t.Errorf("%q is %+v", text, got)
		}
	}
}
