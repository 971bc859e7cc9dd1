package discordtest

import (
	"encoding/json"
	"fmt"
	"time"
)

// A session is what the gateway stores about a bot's connection, so that the bot can resume it after an
// interruption.
type session struct {
	id     string
	events [][]byte // the event with number n is at index n-1
	conn   *conn    // nil while the bot is away
}

// sendEvent numbers an event, stores it, and sends it if the bot is connected. The caller holds the gateway's
// mutex.
func (e *session) sendEvent(kind string, data any) {
	raw, err := json.Marshal(data)
	if err != nil {
		panic("discordtest: an event that is no JSON: " + err.Error()) // the test's mistake
	}
	e.events = append(e.events, fmt.Appendf(nil, `{"op":0,"t":%q,"s":%d,"d":%s}`, kind, len(e.events)+1, raw))
	if e.conn != nil {
		e.conn.send(e.events[len(e.events)-1])
	}
}

// announce sends an event to every session.
func (g *gateway) announce(kind string, data any) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, e := range g.sessions {
		e.sendEvent(kind, data)
	}
}

const (
	messageContent      = 1 << 15          // the intent to read what people write
	mayReadSomeContent  = 1 << 19          // the flag of an application that may use that intent
	allButAdministrator = 1<<53 - 1 - 1<<3 // all permissions except the administrator's
)

// applicationFlags returns the flags of the bot's application.
func (g *gateway) applicationFlags() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.contentForbidden {
		return 0
	}
	return mayReadSomeContent
}

// identify begins a session on a connection, or refuses it.
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
	case g.earlyReconnects > 0:
		g.earlyReconnects--
		k.send([]byte(`{"op":7,"d":null}`))
		return
	case !g.hasToken(asked.Token):
		k.closeWith(4004)
		return
	case asked.Intents == 0:
		k.closeWith(4013)
		return
	case g.contentForbidden && asked.Intents&messageContent != 0:
		k.closeWith(4014)
		return
	}
	g.lastID++
	e := &session{id: fmt.Sprint("session-", g.lastID), conn: k}
	k.session = e
	g.sessions[e.id] = e
	e.sendEvent("READY", map[string]any{
		"v": 9, "session_id": e.id, "resume_gateway_url": "ws://" + k.ws.LocalAddr().String() + gatewayPath, "user": bot(),
		"application": map[string]any{"id": Bot}, "guilds": []any{map[string]any{"id": Guild, "unavailable": true}},
	})
	e.sendEvent("GUILD_CREATE", s.guildJSON())
}

// resume continues a session on a new connection: it sends the events that the bot has not seen.
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
		k.closeWith(4004)
	case e == nil:
		k.send([]byte(`{"op":9,"d":false}`))
	case asked.Seq > len(e.events):
		k.closeWith(4007)
	default:
		e.conn, k.session = k, e
		for _, event := range e.events[asked.Seq:] {
			k.send(event)
		}
		e.sendEvent("RESUMED", map[string]any{})
	}
}

// ExpireSessions ends all sessions: a bot that reconnects must begin a new one.
func (s *Server) ExpireSessions() {
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
		k.closeWith(code)
	}
}

// MuteConnections leaves the current connections open, but sends nothing more on them, not even answers to
// heartbeats.
func (s *Server) MuteConnections() {
	s.gateway.mu.Lock()
	defer s.gateway.mu.Unlock()
	for _, k := range s.gateway.conns {
		k.isMuted = true
		if k.session != nil && k.session.conn == k {
			k.session.conn = nil
		}
	}
}

// WriteFrame writes a frame to every connection.
func (s *Server) WriteFrame(frame string) {
	s.gateway.mu.Lock()
	defer s.gateway.mu.Unlock()
	for _, k := range s.gateway.conns {
		k.send([]byte(frame))
	}
}

// SendEvent sends the bot an event of that kind, with these fields of Discord's JSON.
func (s *Server) SendEvent(kind string, fields map[string]any) { s.gateway.announce(kind, fields) }

// SetHeartbeatInterval sets the heartbeat interval for connections that are opened from now on. The default is 2 s.
func (s *Server) SetHeartbeatInterval(d time.Duration) {
	s.gateway.mu.Lock()
	defer s.gateway.mu.Unlock()
	s.gateway.interval = d
}

// SkipHello leaves the next n connections without a hello, or anything else.
func (s *Server) SkipHello(n int) {
	s.gateway.mu.Lock()
	defer s.gateway.mu.Unlock()
	s.gateway.connsWithoutHello = n
}

// AskEarlyReconnect asks the next n connections that begin a session to reconnect before the session has begun.
func (s *Server) AskEarlyReconnect(n int) {
	s.gateway.mu.Lock()
	defer s.gateway.mu.Unlock()
	s.gateway.earlyReconnects = n
}

// AllowContent sets whether the bot may read what people write.
func (s *Server) AllowContent(may bool) {
	s.gateway.mu.Lock()
	defer s.gateway.mu.Unlock()
	s.gateway.contentForbidden = !may
}

// SessionsLeft sets how many sessions may still be begun.
func (s *Server) SessionsLeft(n int) {
	s.gateway.mu.Lock()
	defer s.gateway.mu.Unlock()
	s.gateway.sessionsLeft = n
}

// Connected returns how many connections to the gateway have a session.
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

// Identifies returns how many times the bot asked to begin a session.
func (s *Server) Identifies() int {
	s.gateway.mu.Lock()
	defer s.gateway.mu.Unlock()
	return s.gateway.identifies
}

// Resumes returns how many times the bot asked to resume a session.
func (s *Server) Resumes() int {
	s.gateway.mu.Lock()
	defer s.gateway.mu.Unlock()
	return s.gateway.resumes
}

// ClosedWith returns the codes with which the bot has closed connections.
func (s *Server) ClosedWith() []int {
	s.gateway.mu.Lock()
	defer s.gateway.mu.Unlock()
	return append([]int(nil), s.gateway.closeCodes...)
}
