package onboard

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// settings has everything that onboard writes: a configuration file, and a file for each secret.
type settings struct {
	file    string
	old     string // what the present file is renamed to; "" if there is none
	model   model
	channel channel
	listen  string // where HTTP listens; "" means the usual place
}

// nameForOld returns the name to which an existing file is renamed before a new one takes its
// place. No file has that name yet.
func nameForOld(file string) string {
	dated := file + ".before-" + time.Now().Format("20060102-150405")
	for name, n := dated, 2; ; name, n = dated+"-"+strconv.Itoa(n), n+1 {
		if _, err := os.Lstat(name); err != nil {
			return name
		}
	}
}

// write writes all files. The configuration comes last, so that the files which it names
// exist then. No file is overwritten that the old configuration may name.
func (s settings) write() error {
	for _, dir := range []string{filepath.Dir(s.file), filepath.Join(filepath.Dir(s.file), secretsFolder)} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("make the folder: %w", err)
		}
	}
	for name, value := range s.secrets() {
		if err := replace(secretPath(s.file, name), value+"\n"); err != nil {
			return err
		}
	}
	if s.old != "" {
		if err := os.Link(s.file, s.old); err != nil {
			return fmt.Errorf("keep the old configuration: %w", err)
		}
	}
	return replace(s.file, s.text())
}

// replace writes a file that only its owner may read, in one step.
func replace(path, text string) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // mode 0600
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	_, err = f.WriteString(text)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // half a file is nobody's
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// secrets returns the secrets that are written to files, by the files' names.
func (s settings) secrets() map[string]string {
	all := map[string]string{}
	add := func(name string, held secret) {
		if held.value != "" && held.env == "" {
			all[s.secretName(name, held)] = held.value
		}
	}
	add("model", s.model.key)
	for _, t := range s.channel.tokens {
		add(s.channel.platform+"_"+t.key, t.secret)
	}
	return all
}

// secretName returns the name of the file that has a secret or will have it: name or, if a file
// of that name holds another secret, which the old configuration may need, the name with a
// number.
func (s settings) secretName(name string, k secret) string {
	for numbered, n := name, 2; ; numbered, n = name+"-"+strconv.Itoa(n), n+1 {
		path := secretPath(s.file, numbered)
		if _, err := os.Lstat(path); err != nil {
			return numbered
		}
		if held, err := os.ReadFile(path); err == nil && string(held) == k.value+"\n" {
			return numbered
		}
	}
}

// reference returns the text by which the configuration file refers to a secret.
func (s settings) reference(name string, k secret) string {
	if k.env != "" {
		return "${" + k.env + "}"
	}
	return "${file:" + secretsFolder + "/" + s.secretName(name, k) + "}"
}

// text returns the content of the configuration file.
func (s settings) text() string {
	var b strings.Builder
	set := func(key, value, why string) {
		line := key + " = " + strconv.Quote(value)
		if why != "" {
			line = fmt.Sprintf("%-44s # %s", line, why)
		}
		b.WriteString(line + "\n")
	}
	b.WriteString(`# Parley's settings, as parley onboard wrote them. docs/configuration.md has all that
# can be set; parley config check says what is in force, and parley doctor whether it
# works. Secrets are not here: they are read from variables or from files beside this one.

`)
	b.WriteString("# Who answers. docs/models.md has the providers and what is special about each.\n[model]\n")
	if m := s.model; m.provider.name == demoProvider {
		set("name", "demo", "the built-in model, which understands a handful of requests")
	} else {
		set("name", m.name, "")
		set("base_url", m.baseURL, "")
		if m.window > 0 {
			fmt.Fprintf(&b, "%-44s # %s\n", fmt.Sprintf("window = %d", m.window), "tokens that it reads at once: more take more memory; left out, it is often 4096")
		}
		if m.key.value != "" {
			set("api_key", s.reference("model", m.key), "")
		}
	}
	b.WriteString(`
# What the agent may do in chats beyond its own files: "shell", "network", "git". In a
# terminal it may do all of it, inside the sandbox.
# [agents.defaults]
# capabilities = ["file_read", "file_write", "shell"]
`)
	if c := s.channel; c.platform != "" {
		fmt.Fprintf(&b, "\n# Where people talk to it.\n[channels.%s]\n", c.platform)
		for _, t := range c.tokens {
			set(t.key, s.reference(c.platform+"_"+t.key, t.secret), "")
		}
		if c.apiURL != "" {
			set("api_url", c.apiURL, "")
		}
		set("access", "pairing", "who writes to it gets a code, and an owner admits with parley pairing approve CODE")
		if c.owner != "" {
			fmt.Fprintf(&b, "owners = [%s]\n", strconv.Quote(c.owner))
		}
	}
	if s.listen != "" {
		b.WriteString("\n# Where programs reach it: docs/http.md.\n[http]\n")
		set("listen", strings.TrimPrefix(s.listen, noListen), "")
	}
	return b.String()
}
