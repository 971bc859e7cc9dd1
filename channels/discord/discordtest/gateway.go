package discordtest

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// gatewayPath is the path of the gateway's WebSocket.
const gatewayPath = "/gateway/"

// A gateway sends events to the bot. Its mutex is always the last one to be locked.
type gateway struct {
	token    string
	upgrader websocket.Upgrader

	mu                sync.Mutex
	interval          time.Duration // the interval of heartbeats
	maxConcurrency    int
	sessionsLeft      int // how many sessions may still be begun
	sessions          map[string]*session
	conns             []*conn
	lastID            int
	identifies        int
	resumes           int
	closeCodes        []int // codes with which the bot closed connections
	connsWithoutHello int   // the number of further connections that get no hello
	// earlyReconnects is the number of further connections that are asked to reconnect before their session begins.
	earlyReconnects  int
	contentForbidden bool // whether the bot may not read what people write
}

// A conn is one of the bot's WebSockets.
type conn struct {
	ws      *websocket.Conn
	out     chan []byte
	closed  chan struct{} // closed when nothing more will be written
	ended   sync.Once
	isMuted bool // whether nothing more is sent on it; guarded by the gateway's mutex
	session *session
}

// newGateway makes a gateway for the bot with that token.
func newGateway(token string) *gateway {
	return &gateway{token: token, interval: 2 * time.Second, maxConcurrency: 1000, sessionsLeft: 1000, sessions: map[string]*session{}}
}

// parseID returns an id as a number; 0 if the text is not an id.
func parseID(id string) uint64 {
	n, _ := strconv.ParseUint(id, 10, 64) // 0 is not an id
	return n
}

// describe returns the answer to "GET gateway/bot".
func (g *gateway) describe(host string) map[string]any {
	g.mu.Lock()
	defer g.mu.Unlock()
	return map[string]any{
		"url": "ws://" + host + gatewayPath, "shards": 1,
		"session_start_limit": map[string]any{"total": 1000, "remaining": g.sessionsLeft, "reset_after": 1000, "max_concurrency": g.maxConcurrency},
	}
}

// A frame is one message of the gateway's protocol.
type frame struct {
	Op   int             `json:"op"`
	Type string          `json:"t,omitempty"`
	Seq  int             `json:"s,omitempty"`
	Data json.RawMessage `json:"d"`
}

// serve handles one connection from its beginning to its end.
func (g *gateway) serve(w http.ResponseWriter, r *http.Request, s *Server) {
	if q := r.URL.Query(); q.Get("v") != "9" || q.Get("encoding") != "json" {
		writeError(w, http.StatusBadRequest, 0, "want v=9 and encoding=json")
		return
	}
	ws, err := g.upgrader.Upgrade(w, r, nil)
	if err != nil {
		return // the client has already been told
	}
	k := &conn{ws: ws, out: make(chan []byte, 1<<15), closed: make(chan struct{})}
	g.mu.Lock()
	g.conns = append(g.conns, k)
	if g.connsWithoutHello > 0 {
		g.connsWithoutHello--
	} else {
		k.out <- fmt.Appendf(nil, `{"op":10,"d":{"heartbeat_interval":%d}}`, g.interval.Milliseconds())
	}
	g.mu.Unlock()
	var writing sync.WaitGroup
	writing.Go(func() { g.write(k) })
	for {
		_, data, err := ws.ReadMessage()
		if err != nil {
			g.recordClose(err)
			break
		}
		var f frame
		if json.Unmarshal(data, &f) == nil {
			g.handleFrame(k, f, s)
		}
	}
	g.removeConn(k)
	writing.Wait()
}

// write sends a connection's queued frames until the connection is gone.
func (g *gateway) write(k *conn) {
	for {
		select {
		case data := <-k.out:
			g.mu.Lock()
			mute := k.isMuted
			g.mu.Unlock()
			if !mute && k.ws.WriteMessage(websocket.TextMessage, data) != nil {
				return // reading will end too
			}
		case <-k.closed:
			return
		}
	}
}

// recordClose records the code with which the bot closed a connection. Codes 1000 and 1001 end the session.
func (g *gateway) recordClose(err error) {
	if closed, ok := err.(*websocket.CloseError); ok && closed.Code != websocket.CloseAbnormalClosure { //nolint:errorlint // gorilla gives it bare
		g.mu.Lock()
		defer g.mu.Unlock()
		g.closeCodes = append(g.closeCodes, closed.Code)
		if closed.Code == 1000 || closed.Code == 1001 {
			clear(g.sessions) // there is only one bot
		}
	}
}

// removeConn closes a connection and forgets it. Its session remains, without a connection.
func (g *gateway) removeConn(k *conn) {
	k.ended.Do(func() { close(k.closed) })
	_ = k.ws.Close() // it has ended
	g.mu.Lock()
	defer g.mu.Unlock()
	g.conns = slices.DeleteFunc(g.conns, func(o *conn) bool { return o == k })
	if k.session != nil && k.session.conn == k {
		k.session.conn = nil
	}
}

// handleFrame does what a frame from the bot asks for.
func (g *gateway) handleFrame(k *conn, f frame, s *Server) {
	switch f.Op {
	case 1:
		g.mu.Lock()
		defer g.mu.Unlock()
		k.send([]byte(`{"op":11}`))
	case 2:
		g.identify(k, f.Data, s)
	case 6:
		g.resume(k, f.Data)
	}
}

// send queues a frame for the bot. The caller holds the gateway's mutex.
func (k *conn) send(data []byte) {
	select {
	case k.out <- data:
	default: // the bot does not read
	}
}

// closeWith closes a connection with a code, and gives the bot a second to close it too.
func (k *conn) closeWith(code int) {
	_ = k.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, ""), time.Now().Add(time.Second)) // it may be broken
	_ = k.ws.NetConn().SetReadDeadline(time.Now().Add(time.Second))                                                    // likewise
}

// cut resets every connection.
func (g *gateway) cut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, k := range g.conns {
		if tcp, ok := k.ws.NetConn().(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // Close then sends a TCP reset
		}
		_ = k.ws.NetConn().Close() // it is being cut
	}
}

// hasToken reports whether given is the bot's token, with or without "Bot " in front.
func (g *gateway) hasToken(given string) bool { return strings.TrimPrefix(given, "Bot ") == g.token }
