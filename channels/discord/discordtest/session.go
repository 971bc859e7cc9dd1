package discordtest

import (
	"encoding/json"
	"fmt"
	"time"
)

// A session is what the gateway keeps for a bot that is cut off for a moment.
type session struct {
	id     string
	events [][]byte // by their numbers, from 1 on
	conn   *conn    // nil while the bot is away
}

// event numbers an event, keeps it, and sends it. The gateway's mutex is held.
func (e *session) event(kind string, data any) {
	raw, err := json.Marshal(data)
	if err != nil {
		panic("discordtest: an event that is no JSON: " + err.Error()) // the test's mistake
	}
	e.events = append(e.events, fmt.Appendf(nil, `{"op":0,"t":%q,"s":%d,"d":%s}`, kind, len(e.events)+1, raw))
	if e.conn != nil {
		e.conn.send(e.events[len(e.events)-1])
	}
}

// announce tells every session of something.
func (g *gateway) announce(kind string, data any) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, e := range g.sessions {
		e.event(kind, data)
	}
}

const (
	messageContent = 1 << 15          // the intent
	readsSome      = 1 << 19          // the flag of an application to which that is allowed
	everything     = 1<<53 - 1 - 1<<3 // all permissions but an administrator's
)

// flags are those of the bot's application.
func (g *gateway) flags() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.noContent {
		return 0
	}
	return readsSome
}

// identify begins a session.
func (g *gateway) identify(k *conn, data json.RawMessage, s *Server) {
	var asked struct {
		Token   string `json:"token"`
		Intents int    `json:"intents"`
	}
	_ = json.Unmarshal(data, &asked) // an empty one is refused
	s.mu.Lock()
	defer s.mu.Unlock()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.identifies++
	switch {
	case g.early > 0:
		g.early--
		k.send([]byte(`{"op":7,"d":null}`))
		return
	case !g.hasToken(asked.Token):
		k.end(4004)
		return
	case asked.Intents == 0:
		k.end(4013)
		return
	case g.noContent && asked.Intents&messageContent != 0:
		k.end(4014)
		return
	}
	g.lastID++
	e := &session{id: fmt.Sprint("session-", g.lastID), conn: k}
	k.session = e
	g.sessions[e.id] = e
	e.event("READY", map[string]any{
		"v": 9, "session_id": e.id, "resume_gateway_url": "ws://" + k.ws.LocalAddr().String() + gatewayPath, "user": bot(),
		"application": map[string]any{"id": Bot}, "guilds": []any{map[string]any{"id": Guild, "unavailable": true}},
	})
	e.event("GUILD_CREATE", s.guild())
}

// resume goes on with a session.
func (g *gateway) resume(k *conn, data json.RawMessage) {
	var asked struct {
		Token   string `json:"token"`
		Session string `json:"session_id"`
		Seq     int    `json:"seq"`
	}
	_ = json.Unmarshal(data, &asked) // an empty one is refused
	g.mu.Lock()
	defer g.mu.Unlock()
	g.resumes++
	e := g.sessions[asked.Session]
	switch {
	case !g.hasToken(asked.Token):
		k.end(4004)
	case e == nil:
		k.send([]byte(`{"op":9,"d":false}`))
	case asked.Seq > len(e.events):
		k.end(4007)
	default:
		e.conn, k.session = k, e
		for _, event := range e.events[asked.Seq:] {
			k.send(event)
		}
		e.event("RESUMED", map[string]any{})
	}
}

// Expire ends all sessions: who comes back has to begin another.
func (s *Server) Expire() {
	s.gateway.mu.Lock()
	defer s.gateway.mu.Unlock()
	clear(s.gateway.sessions)
}

// CutGateway resets every connection to the gateway, without a close frame.
func (s *Server) CutGateway() { s.gateway.cut() }

// CloseGateway closes every connection to the gateway with that code.
func (s *Server) CloseGateway(code int) {
	s.gateway.mu.Lock()
	defer s.gateway.mu.Unlock()
	for _, k := range s.gateway.conns {
		k.end(code)
	}
}

// Mute has the connections that there are bring nothing any more, answers to heartbeats
// neither, while they stay open.
func (s *Server) Mute() {
	s.gateway.mu.Lock()
	defer s.gateway.mu.Unlock()
	for _, k := range s.gateway.conns {
		k.mute = true
		if k.session != nil && k.session.conn == k {
			k.session.conn = nil
		}
	}
}

// Raw writes a frame to every connection.
func (s *Server) Raw(frame string) {
	s.gateway.mu.Lock()
	defer s.gateway.mu.Unlock()
	for _, k := range s.gateway.conns {
		k.send([]byte(frame))
	}
}

// Event tells the bot of something; the fields are Discord's.
func (s *Server) Event(kind string, fields map[string]any) { s.gateway.announce(kind, fields) }

// BeatEvery sets how often heartbeats are to come on connections that are opened from
// now on: every 2 s, unless it is set.
func (s *Server) BeatEvery(d time.Duration) {
	s.gateway.mu.Lock()
	defer s.gateway.mu.Unlock()
	s.gateway.interval = d
}

// SaysNoHello has the next n connections brought nothing at all, and AsksEarly has the
// next n that begin a session asked to connect anew before that.
func (s *Server) SaysNoHello(n int) {
	s.gateway.mu.Lock()
	defer s.gateway.mu.Unlock()
	s.gateway.noHello = n
}

// AsksEarly is explained at SaysNoHello.
func (s *Server) AsksEarly(n int) {
	s.gateway.mu.Lock()
	defer s.gateway.mu.Unlock()
	s.gateway.early = n
}

// AllowContent sets whether the bot may read what people write.
func (s *Server) AllowContent(may bool) {
	s.gateway.mu.Lock()
	defer s.gateway.mu.Unlock()
	s.gateway.noContent = !may
}

// SessionsLeft sets how many sessions may be begun.
func (s *Server) SessionsLeft(n int) {
	s.gateway.mu.Lock()
	defer s.gateway.mu.Unlock()
	s.gateway.left = n
}

// Connected is how many connections to the gateway have a session.
func (s *Server) Connected() (n int) {
	s.gateway.mu.Lock()
	defer s.gateway.mu.Unlock()
	for _, e := range s.gateway.sessions {
		if e.conn != nil {
			n++
		}
	}
	return n
}

// Identifies is how often a session was asked for, and Resumes how often one was to go on.
func (s *Server) Identifies() int {
	s.gateway.mu.Lock()
	defer s.gateway.mu.Unlock()
	return s.gateway.identifies
}

// Resumes is explained at Identifies.
func (s *Server) Resumes() int {
	s.gateway.mu.Lock()
	defer s.gateway.mu.Unlock()
	return s.gateway.resumes
}

// ClosedWith are the codes with which the bot has closed connections.
func (s *Server) ClosedWith() []int {
	s.gateway.mu.Lock()
	defer s.gateway.mu.Unlock()
	return append([]int(nil), s.gateway.closed...)
}
