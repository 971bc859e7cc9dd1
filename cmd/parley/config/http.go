package config

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
)

// HTTPAccess says who may send requests over HTTP, and what they may do.
type HTTPAccess struct {
	HTTP     HTTP
	Tokens   map[string]Token   // by name
	Webhooks map[string]Webhook // by name
}

// HTTP says where the server listens.
type HTTP struct {
	Listen string   // HOST:PORT; "" means off
	Hosts  []string // further host names that requests may address, beside its IP addresses and the names of loopback
	// PublicURL is where others reach the server through a proxy; no trailing slash.
	PublicURL string
}

// A Token is a key with which a program may use the API.
type Token struct {
	Name  string
	Token Secret
	// May lists what the token allows: "send", "agent", "read", "approve", "metrics",
	// "admin" and "send:TARGET", where TARGET may be an address too.
	May []string
}

// A Webhook is a path of the server to which another service posts.
type Webhook struct {
	Name     string
	Kind     string   // "alertmanager", "github" or "json"
	Token    Secret   // "" if the service signs its requests
	Secret   Secret   // key of the signature; "" if the service sends the token
	To       []string // where messages go if no route matches: targets and addresses, as written
	Routes   []Route  // the first that matches decides
	Template string   // "" means the kind's own
	// Agent is the agent that is given what is posted; if it is "", a message is sent to
	// To.
	Agent string
	Group string // for plain JSON that an agent is given: the template whose result says which posts belong together
}

// shortestToken is how many characters a token must have at least, so that it cannot be guessed.
const shortestToken = 16

// checkHTTP reports mistakes in the names of the server, in tokens and in webhooks.
func (l *loader) checkHTTP() {
	for i, host := range l.list("http.hosts") {
		if strings.ContainsAny(host, "/:@ ") || strings.Trim(host, ".") == "" {
			l.report(l.element("http.hosts", i), "http.hosts", fmt.Sprintf("%q is not a name", host),
				"write the name alone, without scheme and port")
		}
	}
	for _, name := range l.names["webhooks"] {
		l.checkWebhook(name)
	}
	seen := map[string]string{}
	for _, name := range l.names["tokens"] {
		l.checkToken(name, seen)
	}
}

func (l *loader) checkWebhook(name string) {
	path := "webhooks." + name
	at := l.places[path]
	kind := l.str(path + ".kind")
	if !l.mentioned(path+".kind") && kind == "" {
		l.report(at, path, "its name is no kind, and it has no kind", `write kind = "json", or "alertmanager" or "github"`)
	}
	token, secret := l.mentioned(path+".token"), l.mentioned(path+".secret")
	switch {
	case !token && !secret:
		l.report(at, path, "has neither token nor secret: anybody could post", `write token = "${file:PATH}", or secret where the sender signs`)
	case kind == github && !secret:
		l.report(at, path, "has no secret: GitHub signs, and sends no token", `write secret = "${file:PATH}", the one that GitHub was given`)
	case kind == alertmanager && !token:
		l.report(at, path, "has no token: Alertmanager sends one, and cannot sign", `write token = "${file:PATH}", the one in Alertmanager's http_config`)
	}
	if !l.mentioned(path + ".to") {
		l.report(at, path, "has no to: what no route takes has nowhere to go", `write to = "TARGET"`)
	}
	l.checkPlaces(path+".to", true)
	l.checkMany(path+".to", l.places[path+".to"], l.list(path+".to"))
	l.checkTemplate(path+".template", `write for example template = "**{{ .title }}** {{ .body }}"`)
	l.checkTemplate(path+".group", `write for example group = "{{ .build.id }}"`)
	l.checkWebhookAgent(path, kind)
	v, ok := l.values[path+".routes"]
	if !ok {
		return
	}
	for i, r := range v.v.([]Route) {
		l.checkMany(path+".routes", l.element(path+".routes", i), r.To)
		for _, s := range r.To {
			if f := l.place(s, true); f != nil {
				l.report(l.element(path+".routes", i), path+".routes", f.wrong, f.remedy)
			}
		}
	}
}

// checkWebhookAgent reports mistakes in a webhook whose posts an agent is given.
func (l *loader) checkWebhookAgent(path, kind string) {
	agent := l.str(path + ".agent")
	if l.mentioned(path+".group") && (agent == "" || kind == alertmanager || kind == github) {
		wrong, remedy := "has no effect without agent", "write agent = \""+MainAgent+"\", or remove it"
		if agent != "" {
			wrong, remedy = "is for plain JSON: what "+kind+" sends has groups of its own", "remove it"
		}
		l.report(l.places[path+".group"], path+".group", wrong, remedy)
	}
	if agent == "" {
		return
	}
	l.checkAgentName(l.places[path+".agent"], path+".agent", agent)
	if slices.Contains(l.names["channels"], "webhook") {
		l.report(l.places["channels.webhook"], "channels.webhook", "where a webhook has an agent, the name webhook is that of its conversations", "choose another name for the channel")
	}
}

func (l *loader) checkTemplate(path, remedy string) {
	v, ok := l.values[path]
	if !ok || l.opts.CheckTemplate == nil {
		return
	}
	err := l.opts.CheckTemplate(v.v.(string))
	if err == nil {
		return
	}
	wrong := "cannot be read"
	if len(v.refs) == 0 { // else the parser may repeat what is secret
		wrong += ": " + err.Error()
	}
	l.report(l.places[path], path, wrong, remedy)
}

func (l *loader) checkToken(name string, seen map[string]string) {
	path := "tokens." + name
	at := l.places[path]
	if !l.mentioned(path + ".token") {
		l.report(at, path, "has no token", `write token = "${file:PATH}"`)
	}
	if token := l.str(path + ".token"); token != "" {
		twin, twice := seen[token]
		switch {
		case len(token) < shortestToken:
			l.report(l.places[path+".token"], path+".token", fmt.Sprintf("too short to be safe from guessing: the shortest has %d characters", shortestToken),
				"make one with: openssl rand -hex 32")
		case twice:
			l.report(l.places[path+".token"], path+".token", "the same as tokens."+twin+"'s: nobody could tell them apart",
				"give it one of its own: openssl rand -hex 32")
		}
		seen[token] = name
	}
	if !l.mentioned(path + ".may") {
		l.report(at, path, "may do nothing", `write for example may = ["read"]`)
	}
	scopes := []string{"send", "agent", "read", "approve", "metrics", "admin"}
	for i, scope := range l.list(path + ".may") {
		if target, aimed := strings.CutPrefix(scope, "send:"); aimed {
			if f := l.place(target, true); f != nil {
				l.report(l.element(path+".may", i), path+".may", f.wrong, f.remedy)
			}
		} else if !slices.Contains(scopes, scope) {
			l.report(l.element(path+".may", i), path+".may", fmt.Sprintf("unknown value %q", scope), oneOf(scope, append(scopes, "send:TARGET")))
		}
	}
}

// exposed returns a notice if the server listens where other machines can reach it although no
// token or webhook would let anybody in.
func (l *loader) exposed() []string {
	listen := l.str("http.listen")
	if listen == "" || len(l.names["tokens"])+len(l.names["webhooks"]) > 0 || l.hearsByHTTP() {
		return nil
	}
	host, _, err := net.SplitHostPort(listen)
	if err != nil || host == "localhost" {
		return nil
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.IsLoopback() {
		return nil
	}
	return []string{l.places["http.listen"].problemAt("http.listen", &fault{
		wrong:  "others can reach it, and neither [tokens] nor [webhooks] lets any of them in",
		remedy: `add [tokens.NAME], or write listen = "127.0.0.1:7275"`,
	}).String()}
}

// hearsByHTTP reports whether the platform of some channel sends requests to the server.
func (l *loader) hearsByHTTP() bool {
	return slices.ContainsFunc(l.names["channels"], func(name string) bool { return l.str("channels."+name+".receive") == byHTTP })
}
