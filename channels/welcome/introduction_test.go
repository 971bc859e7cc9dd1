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
		{welcome.Introduction{Prefix: "/"}, "I am a bot: a program with a language model answers here, no person. What you write to me, and what I read for it, goes to the language model that my operator has chosen. It is kept until somebody erases it. In a chat with me alone `/forget` erases what you have said, and `/export` sends it to you."},
		{welcome.Introduction{Prefix: "/", Models: []string{"api.openai.com"}, Owners: []string{"Ann"}, Days: 30}, "I am a bot: a program with a language model answers here, no person. It is run by `Ann`. What you write to me, and what I read for it, goes to the language model at `api.openai.com`. It is kept for 30 days. In a chat with me alone `/forget` erases what you have said, and `/export` sends it to you."},
		{welcome.Introduction{Prefix: "/", Models: []string{welcome.Local}, Owners: []string{"Ann", "*B`ob*"}, Days: 1, About: " Ask *IT*.\n"}, "I am a bot: a program with a language model answers here, no person. It is run by `Ann` and `*Bob*`. What you write to me stays on the machine that I run on. It is kept for a day. In a chat with me alone `/forget` erases what you have said, and `/export` sends it to you.\n\nAsk *IT*."},
		{welcome.Introduction{Prefix: "/", Models: []string{welcome.Local}, Owners: []string{"A", "B", "C", "D", "E"}}, "I am a bot: a program with a language model answers here, no person. It is run by `A`, `B`, `C` and 2 more. What you write to me stays on the machine that I run on. It is kept until somebody erases it. In a chat with me alone `/forget` erases what you have said, and `/export` sends it to you."},
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
