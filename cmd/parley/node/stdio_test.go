//go:build linux

package node_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/cmd/parley/config"
	"parley/cmd/parley/node"
	"parley/tools/nodes/ssh"
)

// runStdio runs the test binary as the program at the other end of ssh: parley --home DIR node --stdio [--check].
func runStdio(home string, args []string) error {
	c, err := config.Load(config.Options{Home: home, File: filepath.Join(home, "parley.toml"), Env: func(string) (string, bool) { return "", false }})
	if err != nil {
		return err
	}
	if args[len(args)-1] == "--check" {
		return node.Check(context.Background(), c, "1.0", os.Stdout, quiet())
	}
	return node.Stdio(context.Background(), c, "1.0", quiet())
}

// reach returns a Connector that runs the test binary in place of ssh, to connect with a home.
func reach(t *testing.T, home string) ssh.Connector {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\nfor last; do :; done\nexec '%s' stdio '%s' $last\n", binary, home)
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "ssh"), []byte(script), 0o755), os.WriteFile(filepath.Join(home, "parley.toml"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	target, err := ssh.Parse("ssh://a@b")
	if err != nil {
		t.Fatal(err)
	}
	return ssh.Connector{Target: target, Env: os.Environ(), Log: quiet()}
}

// A home serves one server at a time. Later processes of the same server pass their connection on, and other servers
// are refused. A mere check disturbs nobody.
func TestOneServerAtATime(t *testing.T) {
	home := t.TempDir()
	way := reach(t, home)
	one, other := ssh.Greeting{Key: public(seed('a')), Name: "ssh-a-b"}, ssh.Greeting{Key: public(seed('b')), Name: "ssh-a-b"}
	first, err := way.Connect(t.Context(), one)
	if err != nil {
		t.Fatal(err)
	}
	isRefused := func(g ssh.Greeting) {
		t.Helper()
		_, err := way.Connect(t.Context(), g)
		if p, ok := errors.AsType[*ssh.Problem](err); !ok || p.Kind != ssh.ProgramRefuses || !strings.Contains(p.Error(), "another server uses") {
			t.Errorf("%+v: %v", g, err)
		}
	}
	isRefused(other)
	isRefused(ssh.Greeting{Key: one.Key, Name: "ssh-other"})
	if h, err := way.Check(t.Context()); err != nil || !bytes.Equal(h.Key, first.Hello.Key) {
		t.Errorf("a check hears %+v, %v", h, err)
	}
	again, err := way.Connect(t.Context(), one) // like a server whose process was stopped
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(again.Hello.Key, first.Hello.Key) {
		t.Error("the home has another key")
	}
	if _, err := io.Copy(io.Discard, first); err != nil { // the next connection has ended this one, and the process goes on
		t.Error(err)
	}
	_ = again.Close()
	again.Wait()
	first.Wait()
	late := time.Now().Add(20 * time.Second)
	for { // the process may take a moment to end
		c, err := way.Connect(t.Context(), other)
		if err == nil {
			_ = c.Close()
			c.Wait()
			break
		}
		if time.Now().After(late) {
			t.Fatal(err)
		}
	}
	if made, err := filepath.Glob(filepath.Join(home, "stdio", "journal-*")); err != nil || len(made) != 2 {
		t.Errorf("there are the journals %v, %v: want one for each server", made, err)
	}
}

// While a joined node runs in a home, the home serves nobody over ssh.
func TestAHomeWhoseNodeRuns(t *testing.T) {
	home := t.TempDir()
	way := reach(t, home)
	s := newServer(t)
	if _, _, err := node.Join(t.Context(), home, s.URL+"/at", "good", "pi"); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- node.Run(ctx, load(t, home, ""), "1.0", quiet()) }()
	link := <-s.links
	defer link.Close()
	_, err := way.Connect(t.Context(), ssh.Greeting{Key: public(seed('a')), Name: "ssh-a-b"})
	if p, ok := errors.AsType[*ssh.Problem](err); !ok || p.Kind != ssh.ProgramEnded || !strings.Contains(p.Error(), "is already running here") {
		t.Errorf("it is %v", err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
