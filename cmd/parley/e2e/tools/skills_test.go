package tools

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"parley/agent/agenttest"
	"parley/cmd/parley/parleytest"
)

// putSkill writes a skill to a folder of skills.
func putSkill(t *testing.T, dir, name, description, body string) {
	t.Helper()
	parleytest.Must(t, os.MkdirAll(filepath.Join(dir, name), 0o755))
	parleytest.Must(t, os.WriteFile(filepath.Join(dir, name, "SKILL.md"), []byte("---\nname: "+name+"\ndescription: "+description+"\n---\n"+body+"\n"), 0o644))
}

// A shownToModel is a model that records its prompts and tools.
type shownToModel struct {
	mu      sync.Mutex
	prompts []string
	tools   []string
}

func (s *shownToModel) model(r agenttest.Request) agenttest.Response {
	s.mu.Lock()
	s.prompts = append(s.prompts, r.Messages()[0].Content)
	s.tools = append(s.tools, strings.Join(r.Tools(), " "))
	s.mu.Unlock()
	if strings.HasPrefix(r.Said(), "hello") {
		return parleytest.EchoModel(r)
	}
	return commander(r)
}

// last returns the newest prompt, and the tools that were offered with it.
func (s *shownToModel) last() (prompt, tools string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.prompts[len(s.prompts)-1], s.tools[len(s.tools)-1]
}

// The prompts of agents list the operator's skills, and agents can read the skills when they need them. A skill that a
// conversation has written itself is listed separately and cannot have the name of an operator's skill. SIGHUP reads
// the skills again.
func TestSkillsOfTheOperatorAndOfAConversation(t *testing.T) {
	t.Parallel()
	var seen shownToModel
	w := parleytest.New(t, seen.model, "\n[skills]\noff = [\"hushed\"]\n[agents.other]\nskills = []\n")
	dir := filepath.Join(w.Home, "skills")
	putSkill(t, dir, "reports", "How reports are written.", "Begin with the sum: xyzzy.")
	putSkill(t, dir, "hushed", "Not for you.", "x")
	parleytest.Must(t, os.WriteFile(filepath.Join(dir, "reports", "forms.md"), []byte("plugh"), 0o644))
	p := w.Serve()
	w.Telegram.Say(2, 2, "hello")
	w.WaitSaid(2, 1)
	prompt, tools := seen.last()
	parleytest.Wants(t, prompt, "- reports: How reports are written.", "<file name=\"skills\" from=\"operator\">")
	parleytest.Wants(t, tools, "skill")
	if strings.Contains(prompt, "hushed") || strings.Contains(prompt, "xyzzy") {
		t.Errorf("the prompt is %s", prompt)
	}
	w.Telegram.Say(2, 2, `skill {"name":"reports"}`)
	parleytest.Wants(t, w.WaitSaid(2, 2)[1], "Begin with the sum: xyzzy.", "forms.md")
	w.Telegram.Say(2, 2, `skill {"name":"reports","file":"forms.md"}`)
	parleytest.Wants(t, w.WaitSaid(2, 3)[2], "plugh")
	w.Telegram.Say(2, 2, `skill {"name":"hushed"}`)
	parleytest.Wants(t, w.WaitSaid(2, 4)[3], "no skill is called")

	// The agent has read untrusted text, so the skill that it writes now is hidden, until /new.
	w.Telegram.Say(2, 2, "/new")
	w.WaitSaid(2, 5)
	for i, name := range []string{"own", "reports"} {
		args, err := json.Marshal(map[string]string{"path": "skills/" + name + "/SKILL.md", "content": "---\nname: " + name + "\ndescription: Ours.\n---\nOur own word."})
		parleytest.Must(t, err)
		w.Telegram.Say(2, 2, "write_file "+string(args))
		parleytest.Wants(t, w.WaitSaid(2, 6+i)[5+i], "Successfully")
	}
	w.Telegram.Say(2, 2, "hello again")
	w.WaitSaid(2, 8)
	prompt, _ = seen.last()
	parleytest.Wants(t, prompt, "<file name=\"skills\" from=\"workspace\">", "- own: Ours.", "one of the operator's skills has the same name", "- reports: How reports are written.")
	w.Telegram.Say(2, 2, `skill {"name":"own"}`)
	parleytest.Wants(t, w.WaitSaid(2, 9)[8], "Our own word.")
	w.Telegram.Say(2, 2, `skill {"name":"reports"}`)
	parleytest.Wants(t, w.WaitSaid(2, 10)[9], "xyzzy")
	w.Telegram.Say(2, 2, `write_file {"path":"skills/own/SKILL.md","content":"---\nname: own\ndescription: What a stranger said.\n---\n"}`)
	w.WaitSaid(2, 11)
	w.Telegram.Say(2, 2, "hello once more")
	w.WaitSaid(2, 12)
	if prompt, _ = seen.last(); strings.Contains(prompt, "What a stranger said") || !strings.Contains(prompt, "strangers may have written them") {
		t.Errorf("the prompt is %s", prompt)
	}

	putSkill(t, dir, "later", "What came later.", "x")
	parleytest.Must(t, p.Cmd.Process.Signal(syscall.SIGHUP))
	parleytest.WaitFor(t, "the configuration to be read again", func() bool { return strings.Contains(p.Stderr.String(), "configuration read again") })
	w.Telegram.Say(2, 2, "hello at last")
	w.WaitSaid(2, 13)
	prompt, _ = seen.last()
	parleytest.Wants(t, prompt, "- later: What came later.")
	p.Stop()
}

// Without skills, an agent has no tool for skills, and its prompt does not mention skills.
func TestNoSkills(t *testing.T) {
	t.Parallel()
	var seen shownToModel
	w := parleytest.New(t, seen.model, "")
	p := w.Serve()
	w.Telegram.Say(2, 2, "hello")
	w.WaitSaid(2, 1)
	if prompt, tools := seen.last(); strings.Contains(prompt, "name=\"skills\"") || strings.Contains(tools, "skill") {
		t.Errorf("the prompt is %s\nand the tools are %s", prompt, tools)
	}
	p.Stop()
	if out, _, code := w.Run("skills", "list"); code != parleytest.ExitDone || !strings.Contains(out, "no skills") {
		t.Errorf("skills list ended with %d: %s", code, out)
	}
}

// A skill that cannot be used is ignored, because many skills come from other people. The log, doctor and parley skills
// say why and what to do. If the configuration names an unknown skill, the server does not start.
func TestASkillThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	var seen shownToModel
	w := parleytest.New(t, seen.model, "\n[skills]\ntrusted = [\"good\", \"claude-api\"]\n[agents.other]\nskills = [\"goood\", \"bad\"]\n")
	dir := filepath.Join(w.Home, "skills")
	putSkill(t, dir, "good", "Good.", "x")
	putSkill(t, dir, "bad", "unquoted: text", "x")
	putSkill(t, dir, "claude-api", strings.Repeat("e", 1078), "x")
	_, errs, code := w.Run("serve")
	if code != parleytest.ExitConfig || strings.Contains(errs, "needs quotes") || strings.Contains(errs, `"bad"`) {
		t.Errorf("serve ended with %d: %s", code, errs)
	}
	parleytest.Wants(t, errs, "agents.other.skills", `write "good"`)
	if _, errs, code = w.Run("skills"); code != parleytest.ExitConfig {
		t.Errorf("skills ended with %d: %s", code, errs)
	}
	parleytest.Wants(t, errs, "left out: "+filepath.Join(dir, "bad", "SKILL.md"), "needs quotes", "parley serve wouldn't start", `write "good"`)
	text, err := os.ReadFile(w.File)
	parleytest.Must(t, err)
	parleytest.Must(t, os.WriteFile(w.File, []byte(strings.Replace(string(text), "goood", "good", 1)), 0o600))

	p := w.Serve()
	w.Telegram.Say(2, 2, "hello")
	w.WaitSaid(2, 1)
	prompt, _ := seen.last()
	parleytest.Wants(t, prompt, "- good: Good.")
	if strings.Contains(prompt, "claude-api") || strings.Contains(prompt, "- bad") {
		t.Errorf("the prompt is %s", prompt)
	}
	parleytest.Wants(t, p.Stderr.String(), "a skill cannot be used, and agents do without it", `"skill":"claude-api"`, "more than 1024 characters", `"skill":"bad"`, "needs quotes")
	p.Stop()
	out, _, code := w.Run("doctor")
	parleytest.Wants(t, out, "ok     skills: good", "wrong  skills: "+filepath.Join(dir, "bad", "SKILL.md"), "wrong  skills: "+filepath.Join(dir, "claude-api", "SKILL.md"), "agents can't use it until this is fixed: say there what it's for")
	if code != parleytest.ExitFailed {
		t.Errorf("doctor ended with %d", code)
	}
	out, errs, code = w.Run("--json", "skills", "list")
	parleytest.Wants(t, errs, "left out: "+filepath.Join(dir, "claude-api", "SKILL.md"))
	var all []struct {
		Name, Description, Folder string
		Agents                    []string
		Trusted                   bool
	}
	parleytest.Must(t, json.Unmarshal([]byte(out), &all))
	if code != parleytest.ExitDone || len(all) != 1 || all[0].Name != "good" || !all[0].Trusted || strings.Join(all[0].Agents, " ") != "main other" {
		t.Errorf("skills list ended with %d: %s%s", code, out, errs)
	}
}

// putProgram adds a tool with this name to a skill. The tool runs the script.
func putProgram(t *testing.T, dir, skill, tool, script, more string) {
	t.Helper()
	parleytest.Must(t, os.WriteFile(filepath.Join(dir, skill, tool), []byte("#!/bin/sh\n"+script+"\n"), 0o755))
	file := filepath.Join(dir, skill, "skill.toml")
	before, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	parleytest.Must(t, os.WriteFile(file, fmt.Appendf(before, "[[tools]]\nname = %[1]q\ndescription = \"It is %[1]s.\"\nbinary = %[1]q\n%[2]s\n", tool, more), 0o644))
}

// The programs of the operator's skills become tools of the agents that have the capabilities they need, and their
// output is untrusted. A skill of a conversation adds no tools.
func TestToolsOfSkills(t *testing.T) {
	t.Parallel()
	var seen shownToModel
	w := parleytest.New(t, seen.model, "")
	w.NeedsSandbox()
	dir := filepath.Join(w.Home, "skills")
	putSkill(t, dir, "sums", "How sums are made.", "Call sums__total.")
	putProgram(t, dir, "sums", "total", `read -r line; echo "given $line $* by $(cat "$SKILL_DIR/words") for $(cat note)"`, "[tools.parameters.properties.of]\ntype = \"string\"")
	putProgram(t, dir, "sums", "save", "echo xyzzy >made", "sandbox = { workspace = \"write\" }")
	putProgram(t, dir, "sums", "fetch", "exit 0", "sandbox = { network = true }")
	putProgram(t, dir, "sums", "admin", "exit 0", "permissions = [\"shell\"]")
	parleytest.Must(t, os.WriteFile(filepath.Join(dir, "sums", "words"), []byte("a skill"), 0o644))
	p := w.Serve()
	w.Telegram.Say(2, 2, `write_file {"path":"note","content":"the session"}`)
	w.WaitSaid(2, 1)
	_, tools := seen.last()
	if parleytest.Wants(t, tools, "sums__total", "sums__save"); strings.Contains(tools, "sums__fetch") || strings.Contains(tools, "sums__admin") {
		t.Errorf("without the capabilities there are the tools %s", tools)
	}
	w.Telegram.Say(2, 2, `sums__total {"of":"a b"}`)
	parleytest.Wants(t, w.WaitSaid(2, 2)[1], `given {"of":"a b"} --of=a b by a skill for the session`)
	w.Telegram.Say(2, 2, `sums__save {}`)
	w.WaitSaid(2, 3)
	w.Telegram.Say(2, 2, `read_file {"path":"made"}`)
	parleytest.Wants(t, w.WaitSaid(2, 4)[3], "xyzzy")
	w.Telegram.Say(2, 2, `skill {"name":"sums"}`)
	if said := w.WaitSaid(2, 5)[4]; !strings.Contains(said, "sums__total") || strings.Contains(said, "sums__admin") {
		t.Errorf("the skill says %s", said)
	}
	w.Telegram.Say(2, 2, `sums__admin {}`)
	parleytest.Wants(t, w.WaitSaid(2, 6)[5], "not_found")
	// The result is untrusted, so a message to another chat waits for an owner.
	w.Telegram.Say(2, 2, `message {"channel":"telegram","chat_id":"7","content":"hi"}`)
	parleytest.Wants(t, w.WaitSaid(2, 7)[6], "approval", "strangers")
	w.Telegram.Say(2, 2, "/stop")
	w.WaitSaid(2, 8)
	p.Kill() // the timer of the request still waits on the bus
	out, _, _ := w.Run("--json", "skills")
	parleytest.Wants(t, out, "sums__fetch", "sums__total")
}

// An approval of a skill's tool applies to the version of the program that people were asked about. Another version
// does not run until they are asked again. A similarly named skill next to it changes nothing.
func TestAnApprovedToolOfAnotherVersionIsNotRun(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, commander, "\n[tools]\nask = [\"sums__*\"]\n")
	w.NeedsSandbox()
	dir := filepath.Join(w.Home, "skills")
	putSkill(t, dir, "sums", "How sums are made.", "Call sums__total.")
	putProgram(t, dir, "sums", "total", "echo the first", "")
	putSkill(t, dir, "sums-v2", "How sums are made by now.", "Call sums-v2__total.")
	putProgram(t, dir, "sums-v2", "total", "echo the one beside it", "")
	w.Serve()
	approve := func(id string) {
		t.Helper()
		if _, errs, code := w.Run("approvals", "approve", id); code != parleytest.ExitDone {
			t.Fatalf("approvals ended with %d: %s", code, errs)
		}
	}
	w.Telegram.Say(2, 2, "sums__total {}")
	id := parleytest.Requested(t, w.WaitSaid(2, 1)[0])
	parleytest.Must(t, os.WriteFile(filepath.Join(dir, "sums", "total"), []byte("#!/bin/sh\necho the second\n"), 0o755))
	approve(id)
	said := func() string { return strings.Join(parleytest.Texts(w.Telegram.Sent(2)), "\n") }
	parleytest.WaitFor(t, "the refusal", func() bool { return strings.Contains(said(), "has changed since") })
	parleytest.Wants(t, said(), "but I didn't run it: a file, the directory, the arguments or the tool itself has changed")
	if strings.Contains(said(), "the first") || strings.Contains(said(), "the second") {
		t.Errorf("it ran: %s", said())
	}
	w.Telegram.Say(2, 2, "sums__total {}")
	var again string
	parleytest.WaitFor(t, "another request", func() bool {
		i := slices.IndexFunc(parleytest.Texts(w.Telegram.Sent(2)), func(text string) bool {
			return strings.Contains(text, "(Request ") && !strings.Contains(text, id)
		})
		if i >= 0 {
			again = parleytest.Requested(t, parleytest.Texts(w.Telegram.Sent(2))[i])
		}
		return i >= 0
	})
	approve(again)
	parleytest.WaitFor(t, "the second version", func() bool { return strings.Contains(said(), "the second") })
	w.Telegram.Say(2, 2, "sums-v2__total {}")
	parleytest.WaitFor(t, "the version beside it", func() bool { return strings.Contains(said(), "the one beside it") })
}

// A skill that an agent proposes is only for its own conversation until an owner has looked at the whole skill and
// accepts it. The accepted skill is exactly what the owner was shown.
func TestASkillThatAnAgentProposes(t *testing.T) {
	t.Parallel()
	var seen shownToModel
	w := parleytest.New(t, seen.model, "\n[skills]\npropose = true\n")
	p := w.Serve()
	w.Telegram.Say(1, 1, "hello") // the owner is told in the chat in which they talk to the bot
	w.WaitSaid(1, 1)
	n := 0
	say := func(text string) string {
		t.Helper()
		n = len(w.Telegram.Sent(2))
		w.Telegram.Say(2, 2, text)
		return w.WaitSaid(2, n+1)[n]
	}
	write := func(file, text string) string {
		args, err := json.Marshal(map[string]string{"path": "skills/weekly/" + file, "content": text})
		parleytest.Must(t, err)
		return "write_file " + string(args)
	}
	parleytest.Wants(t, say(`skill_propose {"name":"weekly"}`), "invalid_args", "has no SKILL.md")
	say(write("SKILL.md", "---\nname: weekly\ndescription: How the week is told.\n---\nBegin with the sum: xyzzy."))
	say(write("forms.md", "\x1b[2Jplugh"))
	parleytest.Wants(t, say(`skill_propose {"name":"weekly"}`), "proposed")
	parleytest.WaitFor(t, "the owner to be told", func() bool {
		return strings.Contains(strings.Join(parleytest.Texts(w.Telegram.Sent(1)), "\n"), "has proposed a skill for all conversations: weekly. Look at it")
	})
	out, _, code := w.Run("skills", "accept")
	if parleytest.Wants(t, out, "weekly", "main:telegram:2", "no"); code != parleytest.ExitDone {
		t.Errorf("skills accept ended with %d", code)
	}
	out, errs, code := w.Run("skills", "accept", "weekly")
	if parleytest.Wants(t, out, "--- SKILL.md", "Begin with the sum: xyzzy.", "--- forms.md", "plugh"); code == parleytest.ExitDone || strings.Contains(out, "\x1b[2J") {
		t.Errorf("without anybody to ask it ended with %d: %s%s", code, out, errs)
	}

	// An owner who accepts the skill gets exactly what they were shown, or an error.
	say(write("forms.md", "something else"))
	if _, errs, code = w.Run("skills", "accept", "weekly", "--yes"); code != parleytest.ExitFailed || !strings.Contains(errs, "have changed since the agent proposed it") {
		t.Errorf("changed, it ended with %d: %s", code, errs)
	}
	say(`skill_propose {"name":"weekly"}`)
	p.Kill()
	p = w.Serve()
	p.WaitServing()
	if out, errs, code = w.Run("skills", "accept", "weekly", "--yes"); code != parleytest.ExitDone {
		t.Fatalf("it ended with %d: %s%s", code, out, errs)
	}
	parleytest.Wants(t, out, "Agents now have the skill weekly", filepath.Join(w.Home, "skills", "weekly"))
	say("hello")
	prompt, _ := seen.last()
	parleytest.Wants(t, prompt, "<file name=\"skills\" from=\"operator\">", "- weekly: How the week is told.")
	if out, _, _ = w.Run("skills", "accept"); !strings.Contains(out, "No agent has proposed a skill.") {
		t.Errorf("still waiting: %s", out)
	}
	parleytest.Wants(t, say(`skill_propose {"name":"weekly"}`), "already has a skill weekly", "weekly-v2")

	// The request says that the agent has read strangers' words. A refused skill is gone, and so is a forgotten one.
	say(`skill {"name":"weekly"}`)
	say(`write_file {"path":"skills/other/SKILL.md","content":"---\nname: other\ndescription: Other.\n---\n"}`)
	parleytest.Wants(t, say(`skill_propose {"name":"other"}`), "proposed")
	if out, _, _ = w.Run("skills", "accept"); !strings.Contains(out, "maybe") {
		t.Errorf("nothing is said of strangers: %s", out)
	}
	if _, errs, code = w.Run("skills", "refuse", "other"); code != parleytest.ExitDone {
		t.Errorf("refuse ended with %d: %s", code, errs)
	}
	if _, errs, code = w.Run("skills", "accept", "other", "--yes"); code != parleytest.ExitFailed || !strings.Contains(errs, "no skill by that name has been proposed") {
		t.Errorf("refused, it ended with %d: %s", code, errs)
	}
	say(`skill_propose {"name":"other"}`)
	if _, errs, code = w.Run("forget", "--session", "main:telegram:2", "--yes"); code != parleytest.ExitDone {
		t.Errorf("forget ended with %d: %s", code, errs)
	}
	if out, _, _ = w.Run("skills", "accept"); !strings.Contains(out, "No agent has proposed a skill.") {
		t.Errorf("what was forgotten is still proposed: %s", out)
	}
	p.Stop()
}
