package onboard

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/cmd/parley/config"
)

// settings holds everything that onboard writes: a configuration file, and a file for each secret.
type settings struct {
	file    string
	old     string // the new name for the existing file; "" if it is not replaced
	model   model
	channel channel
	listen  string // where HTTP listens; "" means the usual address

	present     *config.Config // the content of the file that is added to; nil if a new one is written
	addsModel   bool           // whether a model is added to the existing file
	addsChannel bool           // whether a channel is added to the existing file
}

// nameForOld returns an unused name for an existing file, which is renamed to it before a new file takes its place.
func nameForOld(file string) string {
	dated := file + ".before-" + time.Now().Format("20060102-150405")
	for name, n := dated, 2; ; name, n = dated+"-"+strconv.Itoa(n), n+1 {
		if _, err := os.Lstat(name); err != nil {
			return name
		}
	}
}

// write writes all files. It writes the configuration last, so that the files that it names exist by then, and only
// if load can read it. It overwrites no file that the old configuration may name.
func (s *settings) write(load func(file string) (*config.Config, error)) (err error) {
	text, err := s.text()
	if err != nil {
		return err
	}
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
	trial := s.file + ".new" // in the file's folder, because paths in the file are relative to it
	if err := replace(trial, text); err != nil {
		return err
	}
	read, err := load(trial)
	if err == nil {
		err = s.check(read)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("the new settings don't work, so nothing was written: %w", err), os.Remove(trial))
	}
	if s.old != "" {
		if err := os.Link(s.file, s.old); err != nil {
			return errors.Join(fmt.Errorf("keep the old configuration: %w", err), os.Remove(trial))
		}
	}
	if err := os.Rename(trial, s.file); err != nil {
		return fmt.Errorf("write %s: %w", s.file, err)
	}
	return nil
}

// check returns an error if the settings that were read don't contain what was to be added: the file may be written
// in a way that onboard doesn't understand.
func (s *settings) check(read *config.Config) error {
	c, ok := read.Channels[s.channel.name]
	if s.channel.platform != "" && (!ok || c.Platform != s.channel.platform) {
		return fmt.Errorf("the channel %s isn't among them: add it by hand", s.channel.name)
	}
	name, further := strings.CutPrefix(s.modelTable(), "models.")
	m := read.Model
	if further {
		m = read.Models[name]
	}
	if s.addsModel && (m.Name != s.model.name || further && s.model.fallback && !slices.Contains(read.Model.Fallback, name)) {
		return fmt.Errorf("the model %s isn't among them: add it by hand", s.model.name)
	}
	return nil
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
		_ = os.Remove(f.Name()) // a partial file is useless
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// secrets returns the secrets to be written to files, by file name.
func (s *settings) secrets() map[string]string {
	all := map[string]string{}
	add := func(name string, held secret) {
		if held.value != "" && held.env == "" {
			all[s.secretName(name, held)] = held.value
		}
	}
	add(secretOf(s.modelTable()), s.model.key)
	for _, t := range s.channel.tokens {
		add(s.channel.name+"_"+t.key, t.secret)
	}
	return all
}

// secretName returns the name of the file that contains or will contain a secret: name or, if a file with that name
// contains another secret, which the old configuration may need, the name with a number.
func (s *settings) secretName(name string, k secret) string {
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

// secretOf returns the name of the file for the key of the model in that table.
func secretOf(table string) string { return strings.ReplaceAll(table, ".", "_") }

// reference returns the text with which the configuration file refers to a secret.
func (s *settings) reference(name string, k secret) string {
	if k.env != "" {
		return "${" + k.env + "}"
	}
	return "${file:" + secretsFolder + "/" + s.secretName(name, k) + "}"
}

// text returns the content of the configuration file: a new one, or the existing one with the additions.
func (s *settings) text() (string, error) {
	if s.present != nil {
		return s.added()
	}
	return strings.Join(slices.DeleteFunc([]string{`# Parley's settings, as parley onboard wrote them. docs/configuration.md lists every
# setting; parley config check shows what is in effect, and parley doctor whether it
# works. Secrets aren't here: Parley reads them from variables, or from files next to this one.
`, "# The model that answers. docs/models.md describes each provider.\n[model]\n" + s.modelLines("model"), `# What the agent may do in chats beyond its own files: "shell", "network", "git". In a
# terminal it may do all of it, inside the sandbox.
# [agents.defaults]
# capabilities = ["file_read", "file_write", "shell"]
`, s.channelTable(), s.listenTable()}, func(part string) bool { return part == "" }), "\n"), nil
}

// settingLine returns the line that sets a setting, with a comment that says why it is there.
func settingLine(key, value, why string) string {
	text := key + " = " + value
	if why != "" {
		text = fmt.Sprintf("%-44s # %s", text, why)
	}
	return text + "\n"
}

// modelLines returns the settings of the model in the table "model", or those of an additional model.
func (s *settings) modelLines(table string) string {
	m := s.model
	if m.provider.name == demoProvider {
		return settingLine("name", `"demo"`, "the built-in model, which understands a handful of requests")
	}
	text := settingLine("name", strconv.Quote(m.name), "") + settingLine("base_url", strconv.Quote(m.baseURL), "")
	if m.window > 0 {
		text += settingLine("window", strconv.Itoa(m.window), "how many tokens it can read at once; a larger number takes more memory, and the usual default is 4096")
	}
	if m.key.value != "" {
		text += settingLine("api_key", strconv.Quote(s.reference(secretOf(table), m.key)), "")
	}
	return text
}

// channelTable returns the table for the channel; "" if there is none.
func (s *settings) channelTable() string {
	c := s.channel
	if c.platform == "" {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# Where people talk to the bot.\n[channels.%s]\n", c.name)
	if c.name != c.platform {
		b.WriteString(settingLine("platform", strconv.Quote(c.platform), ""))
	}
	for _, t := range c.tokens {
		b.WriteString(settingLine(t.key, strconv.Quote(s.reference(c.name+"_"+t.key, t.secret)), ""))
	}
	if c.apiURL != "" {
		b.WriteString(settingLine("api_url", strconv.Quote(c.apiURL), ""))
	}
	b.WriteString(settingLine("access", `"pairing"`, "whoever writes to it gets a code, and an owner lets them in with parley pairing approve CODE"))
	if c.owner != "" {
		b.WriteString(settingLine("owners", "["+strconv.Quote(c.owner)+"]", ""))
	}
	return b.String()
}

// listenTable returns the table that says where HTTP listens; "" if that is the usual address.
func (s *settings) listenTable() string {
	if s.listen == "" {
		return ""
	}
	return "# Where programs reach the bot: docs/http.md.\n[http]\n" + settingLine("listen", strconv.Quote(strings.TrimPrefix(s.listen, noListen)), "")
}
