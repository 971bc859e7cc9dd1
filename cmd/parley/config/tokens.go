package config

import (
	"fmt"
	"slices"
	"strings"

	"parley/cmd/parley/config/schema"
)

// A Token is a key with which a program may use the API.
type Token struct {
	Name  string
	Token Secret
	// May lists what the token allows: "send", "agent", "own", "read", "approve", "metrics",
	// "admin" and "send:TARGET", where TARGET may also be an address.
	May []string
}

// ownerName is the name that the home's owner has in logs and in the audit, where other callers have
// the names of their tokens. So no token may have this name.
const ownerName = "owner"

// tokensSection declares the settings of tokens.
func tokensSection() section {
	return section{
		Section: schema.Section{Name: "tokens", Named: true, WideNames: true, RefuseName: refuseOwner, Reload: schema.AtOnce, Settings: []schema.Setting{
			{Key: "token", Kind: schema.Text, Secret: true, Example: `"${file:/run/secrets/ci}"`, Reload: schema.AtOnce, Fill: schema.Into(func(t *Token) any { return &t.Token })},
			{Key: "may", Kind: schema.Texts, Example: `["send:oncall"]`, Reload: schema.AtOnce, Fill: schema.Into(func(t *Token) any { return &t.May })},
		}},
		check: func(l *loader) {
			seen := map[string]string{}
			for _, name := range l.Names("tokens") {
				checkToken(l, name, seen)
			}
		},
	}
}

// refuseOwner returns why a token cannot have a name; nil if it can.
func refuseOwner(name string) *schema.Fault {
	if name == ownerName {
		return &schema.Fault{Wrong: "the name owner is reserved for the local owner, whose token is in the home", Remedy: "choose another"}
	}
	return nil
}

// minTokenBytes is how many bytes a token, or the key in a subscription's secret, must have at least, so that it cannot be guessed.
const minTokenBytes = 16

// checkToken reports a token that is missing, easily guessed or the same as another, and scopes that don't exist.
// seen maps the tokens found so far to their names.
func checkToken(l *loader, name string, seen map[string]string) {
	path := "tokens." + name
	at := l.At(path)
	if !l.Mentioned(path + ".token") {
		l.Report(at, path, "has no token", `write token = "${file:PATH}"`)
	}
	if token := l.Text(path + ".token"); token != "" {
		twin, twice := seen[token]
		switch {
		case len(token) < minTokenBytes:
			l.Report(l.At(path+".token"), path+".token", fmt.Sprintf("short enough to guess: it needs at least %d characters", minTokenBytes),
				"make one with: openssl rand -hex 32")
		case twice:
			l.Report(l.At(path+".token"), path+".token", "the same token as tokens."+twin+": Parley couldn't tell the two apart",
				"give it one of its own: openssl rand -hex 32")
		}
		seen[token] = name
	}
	if !l.Mentioned(path + ".may") {
		l.Report(at, path, "isn't allowed to do anything", `write something like may = ["read"]`)
	}
	scopes := []string{"send", "agent", "own", "read", "approve", "metrics", "admin"}
	for i, scope := range l.Texts(path + ".may") {
		if target, aimed := strings.CutPrefix(scope, "send:"); aimed {
			if f := checkPlace(l, target, true); f != nil {
				l.Report(l.ElementAt(path+".may", i), path+".may", f.Wrong, f.Remedy)
			}
		} else if !slices.Contains(scopes, scope) {
			l.Report(l.ElementAt(path+".may", i), path+".may", fmt.Sprintf("unknown value %q", scope), schema.OneOf(scope, append(scopes, "send:TARGET")))
		}
	}
}
