package config_test

import (
	"testing"

	"parley/cmd/parley/config"
	"parley/tools/guard"
)

func ruled(o *config.Options) {
	o.Tools = []string{"exec_shell", "read_file"}
	o.CheckRule = func(text string) (string, error) {
		rule, err := guard.ParseRule(text)
		if err != nil {
			return "", err
		}
		return rule.Unknown(o.Tools), nil
	}
}

func TestRulesAreRead(t *testing.T) {
	c := good(t, "[tools]\ndeny = [\"exec_shell(git push *)\"]\n[agents.defaults]\nask = [\"read_file\"]\n[agents.ops]\nallow = [\"exec_*\"]\n", nil)
	same(t, "rules of all", c.Tools.Rules.Deny, []string{"exec_shell(git push *)"})
	same(t, "rules of one", c.Agents["ops"].Rules.Allow, []string{"exec_*"})
	same(t, "rules of the defaults", c.Agents["ops"].Rules.Ask, []string{"read_file"})
}

func TestBadRules(t *testing.T) {
	for _, c := range []badCase{
		{"unknown tool", "[tools]\ndeny = [\"read_file\",\n \"exec_shel(git push *)\"]",
			`3: tools.deny: no tool is called "exec_shel": write "exec_shell(git push *)"`},
		{"unknown tool like no other", "[agents.main]\nallow = [\"x\"]",
			`2: agents.main.allow: no tool is called "x": the tools are exec_shell, read_file`},
		{"no rule", "[agents.defaults]\nask = [\"exec_shell(ls\"]",
			`2: agents.defaults.ask: "exec_shell(ls" is no rule: it does not end with a parenthesis: write TOOL(PATTERN): write for example "exec_shell(git push *)"`},
	} {
		c.run(t)
	}
}
