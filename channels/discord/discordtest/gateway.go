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

// gatewayPath is where the gateway is.
const gatewayPath = "/gateway/"

// A gateway is where events come from. Its mutex is taken last.
type gateway struct {
	token    string
	upgrader websocket.Upgrader

	mu         sync.Mutex
	interval   time.Duration
	atOnce     int
	left       int // sessions that may be begun
	sessions   map[string]*session
	conns      []*conn
	lastID     int
	identifies int
	resumes    int
	closed     []int // codes with which the bot closed
	noHello    int
	early      int  // connections that are asked to reconnect before their session begins
	noContent  bool // the bot may not read what people write
}

// A conn is one connection.
type conn struct {
	ws      *websocket.Conn
	out     chan []byte
	gone    chan struct{} // closed when nothing is written any more
	ended   sync.Once
	mute    bool // it brings nothing and answers nothing; under the gateway's mutex
	session *session
}

func newGateway(token string) *gateway {
	return &gateway{token: token, interval: 2 * time.Second, atOnce: 1000, left: 1000, sessions: map[string]*session{}}
}

func number(id string) uint64 {
	n, _ := strconv.ParseUint(id, 10, 64) // 0 is no id
	return n
}

// entry is what is told of the gateway.
func (g *gateway) entry(host string) map[string]any {
	g.mu.Lock()
	defer g.mu.Unlock()
	return map[string]any{
		"url": "ws://" + host + gatewayPath, "shards": 1,
		"session_start_limit": map[string]any{"total": 1000, "remaining": g.left, "reset_after": 1000, "max_concurrency": g.atOnce},
	}
}

type frame struct {
	Op   int             `json:"op"`
	Type string          `json:"t,omitempty"`
	Seq  int             `json:"s,omitempty"`
	Data json.RawMessage `json:"d"`
}

// serve is one connection, from its beginning to its end.
func (g *gateway) serve(w http.ResponseWriter, r *http.Request, s *Server) {
	if q := r.URL.Query(); q.Get("v") != "9" || q.Get("encoding") != "json" {
		refuse(w, http.StatusBadRequest, 0, "want v=9 and encoding=json")
		return
	}
	ws, err := g.upgrader.Upgrade(w, r, nil)
	if err != nil {
		return // the caller has been told
	}
	k := &conn{ws: ws, out: make(chan []byte, 1<<15), gone: make(chan struct{})}
	g.mu.Lock()
	g.conns = append(g.conns, k)
	if g.noHello > 0 {
		g.noHello--
	} else {
		k.out <- fmt.Appendf(nil, `{"op":10,"d":{"heartbeat_interval":%d}}`, g.interval.Milliseconds())
	}
	g.mu.Unlock()
	var writing sync.WaitGroup
	writing.Go(func() { g.write(k) })
	for {
		_, data, err := ws.ReadMessage()
		if err != nil {
			g.note(err)
			break
		}
		var f frame
		if json.Unmarshal(data, &f) == nil {
			g.take(k, f, s)
		}
	}
	g.leave(k)
	writing.Wait()
}

// write sends what is to go out.
func (g *gateway) write(k *conn) {
	for {
		select {
		case data := <-k.out:
			g.mu.Lock()
			mute := k.mute
			g.mu.Unlock()
			if !mute && k.ws.WriteMessage(websocket.TextMessage, data) != nil {
				return // reading ends as well
			}
		case <-k.gone:
			return
		}
	}
}

// note notes how the bot has closed a connection.
func (g *gateway) note(err error) {
	if closed, ok := err.(*websocket.CloseError); ok && closed.Code != websocket.CloseAbnormalClosure { //nolint:errorlint // gorilla gives it bare
		g.mu.Lock()
		defer g.mu.Unlock()
		g.closed = append(g.closed, closed.Code)
		if closed.Code == 1000 || closed.Code == 1001 {
			clear(g.sessions) // there is one bot
		}
	}
}

func (g *gateway) leave(k *conn) {
	k.ended.Do(func() { close(k.gone) })
	_ = k.ws.Close() // it has ended
	g.mu.Lock()
	defer g.mu.Unlock()
	g.conns = slices.DeleteFunc(g.conns, func(o *conn) bool { return o == k })
	if k.session != nil && k.session.conn == k {
		k.session.conn = nil
	}
}

// take does what a frame of the bot's asks for.
func (g *gateway) take(k *conn, f frame, s *Server) {
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

// send puts a frame on its way. The gateway's mutex is held.
func (k *conn) send(data []byte) {
	select {
	case k.out <- data:
	default: // the bot does not read
	}
}

// end closes a connection with a code, and waits a moment for how the bot does.
func (k *conn) end(code int) {
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

// hasToken tells whether a frame names the bot's token.
func (g *gateway) hasToken(given string) bool { return strings.TrimPrefix(given, "Bot ") == g.token }
