package welcome_test

import (
	"testing"

	"parley/channels/welcome"
)

func TestIntroduction(t *testing.T) {
	for _, c := range []struct {
		facts welcome.Introduction
		want  string
	}{
		{welcome.Introduction{Prefix: "/"}, "I'm a bot: the answers here come from a program with a language model, not from a person. What you write to me, and what I read to answer you, goes to the language model my operator has chosen. I keep what you write until somebody erases it. In a private chat with me, `/forget` erases what you've said, and `/export` sends it to you."},
		{welcome.Introduction{Prefix: "/", Models: []string{"api.openai.com"}, Owners: []string{"Ann"}, Days: 30}, "I'm a bot: the answers here come from a program with a language model, not from a person. I'm run by `Ann`. What you write to me, and what I read to answer you, goes to the language model at `api.openai.com`. I keep what you write for 30 days. In a private chat with me, `/forget` erases what you've said, and `/export` sends it to you."},
		{welcome.Introduction{Prefix: "/", Models: []string{welcome.Local}, Owners: []string{"Ann", "*B`ob*"}, Days: 1, About: " Ask *IT*.\n"}, "I'm a bot: the answers here come from a program with a language model, not from a person. I'm run by `Ann` and `*Bob*`. What you write to me stays on the machine I run on. I keep what you write for a day. In a private chat with me, `/forget` erases what you've said, and `/export` sends it to you.\n\nAsk *IT*."},
		{welcome.Introduction{Prefix: "/", Models: []string{welcome.Local}, Owners: []string{"A", "B", "C", "D", "E"}}, "I'm a bot: the answers here come from a program with a language model, not from a person. I'm run by `A`, `B`, `C` and 2 more. What you write to me stays on the machine I run on. I keep what you write until somebody erases it. In a private chat with me, `/forget` erases what you've said, and `/export` sends it to you."},
	} {
		if got := c.facts.Text(); got != c.want {
			t.Errorf("%+v is told as\n%s\nwant\n%s", c.facts, got, c.want)
		}
	}
}

func TestHost(t *testing.T) {
	for address, want := range map[string]string{
		"https://api.openai.com/v1": "api.openai.com", "http://name:secret@10.0.0.1:8080/v1?key=secret": "10.0.0.1:8080", "http://[": "",
	} {
		if got := welcome.Host(address); got != want {
			t.Errorf("Host(%q) = %q, want %q", address, got, want)
		}
	}
}
