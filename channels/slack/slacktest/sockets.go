package slacktest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
)

// ackTimeout is how long Slack waits for an acknowledgement before it sends an event again.
const ackTimeout = 3 * time.Second

// defaultPing is how often Slack pings a socket.
const defaultPing = 5 * time.Second

// sockets holds the app's connections, and the events that have not been acknowledged yet.
type sockets struct {
	upgrader websocket.Upgrader

	mu            sync.Mutex
	openSockets   []*socket
	deliveryCount int                // counts deliveries, so that the sockets take turns
	socketByChat  map[string]*socket // the socket that a chat's events go to; nil if they go to any
	isFrozen      bool
	lastID        int
	acks          int
	ping          time.Duration // the interval of pings
	pending       map[string]*envelope
	acked         map[string]bool
	shown         map[string]json.RawMessage // the payloads of acknowledgements, by envelope
	waiting       []*envelope                // envelopes that wait because no socket is open
	hook          *hook                      // delivers instead of the sockets, if set
}

// A socket is one of the app's connections.
type socket struct {
	conn     *websocket.Conn
	out      chan []byte
	closed   chan struct{} // closed when nothing more will be written
	goneOnce sync.Once
	isMuted  atomic.Bool // whether it answers pings but delivers nothing
}

// An envelope holds an event or an action until it is acknowledged.
type envelope struct {
	id       string
	kind     string // events_api; or interactive or slash_commands, which are sent only once
	payload  json.RawMessage
	attempts int
	chat     string // the channel in which it happened
	sentOn   *socket
	timer    *time.Timer
}

// newSockets makes a sockets without connections.
func newSockets() *sockets {
	return &sockets{ping: defaultPing, pending: map[string]*envelope{}, acked: map[string]bool{}, shown: map[string]json.RawMessage{}}
}

// serve handles one connection from its beginning to its end.
func (s *sockets) serve(w http.ResponseWriter, r *http.Request) {
	conn, err := s.upgrader.Upgrade(w, r, nil)
	if err != nil {
		return // the client has already been told
	}
	k := &socket{conn: conn, out: make(chan []byte, 4096), closed: make(chan struct{})}
	conn.SetPingHandler(func(data string) error {
		select {
		case <-k.closed:
		default:
			_ = conn.WriteControl(websocket.PongMessage, []byte(data), time.Now().Add(time.Second)) // a broken one ends by itself
		}
		return nil
	})
	s.mu.Lock()
	s.openSockets = append(s.openSockets, k)
	hello := fmt.Sprintf(`{"type":"hello","num_connections":%d,"connection_info":{"app_id":"A0PARLEY"}}`, len(s.openSockets))
	k.out <- []byte(hello)
	for _, e := range s.waiting {
		s.deliver(e)
	}
	s.waiting = nil
	every := s.ping
	s.mu.Unlock()
	var writing sync.WaitGroup
	writing.Go(func() { s.write(k, every) })
	for {
		_, data, err := conn.ReadMessage()
		if err != nil {
			break
		}
		select {
		case <-k.closed:
			continue
		default:
		}
		var ack struct {
			ID      string          `json:"envelope_id"`
			Payload json.RawMessage `json:"payload"`
		}
		if json.Unmarshal(data, &ack) == nil && ack.ID != "" {
			s.ack(ack.ID, ack.Payload)
		}
	}
	k.goneOnce.Do(func() { close(k.closed) })
	s.removeSocket(k)
	_ = conn.Close() // it has ended
	writing.Wait()
}

// write sends a connection's queued frames, and pings, until the connection is gone.
func (s *sockets) write(k *socket, every time.Duration) {
	ping := time.NewTicker(every)
	defer ping.Stop()
	for {
		select {
		case data := <-k.out:
			if k.isMuted.Load() {
				continue // it will be sent again, because nobody acknowledges it
			}
			if k.conn.WriteMessage(websocket.TextMessage, data) != nil {
				return // reading will end too
			}
		case <-ping.C:
			if k.isMuted.Load() {
				continue
			}
			_ = k.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(time.Second)) // a broken one ends by itself
		case <-k.closed:
			return
		}
	}
}

// removeSocket forgets a socket. The envelopes that were not acknowledged on it go to another one.
func (s *sockets) removeSocket(k *socket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, o := range s.openSockets {
		if o == k {
			s.openSockets = append(s.openSockets[:i], s.openSockets[i+1:]...)
			break
		}
	}
	for _, e := range s.pending {
		if e.sentOn == k {
			e.sentOn = nil
			s.deliver(e)
		}
	}
}

// sendEvent wraps an event in an envelope and delivers it.
func (s *sockets) sendEvent(event map[string]any, eventID string) {
	payload, err := json.Marshal(map[string]any{
		"type": "event_callback", "team_id": Team, "event_id": eventID, "event_time": time.Now().Unix(), "event": event,
	})
	if err != nil {
		panic("slacktest: an event that is no JSON: " + err.Error()) // the test's mistake
	}
	chat, _ := event["channel"].(string)
	s.enqueue(eventsAPI, chat, payload)
}

// enqueue makes an envelope, delivers it, and returns its id.
func (s *sockets) enqueue(kind, chat string, payload json.RawMessage) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastID++
	e := &envelope{id: fmt.Sprintf("envelope-%d", s.lastID), kind: kind, chat: chat, payload: payload}
	s.pending[e.id] = e
	if s.hook != nil {
		s.hook.add(e)
		return e.id
	}
	s.deliver(e)
	return e.id
}

// deliver sends an envelope over the socket whose turn it is. The caller holds s.mu.
func (s *sockets) deliver(e *envelope) {
	if e.timer != nil {
		e.timer.Stop()
	}
	if s.pending[e.id] != e {
		return // acknowledged or forgotten in the meantime
	}
	if e.kind != eventsAPI && (e.attempts > 0 || len(s.openSockets) == 0) {
		delete(s.pending, e.id) // the person who pressed is told that it failed
		return
	}
	if len(s.openSockets) == 0 || s.isFrozen {
		s.waiting = append(s.waiting, e)
		return
	}
	k := s.socketFor(e.chat)
	frame := fmt.Sprintf(`{"type":%q,"envelope_id":%q,"accepts_response_payload":%t,"retry_attempt":%d,"payload":%s}`,
		e.kind, e.id, e.kind != eventsAPI, e.attempts, e.payload)
	e.attempts++
	e.sentOn = k
	select {
	case k.out <- []byte(frame):
	default: // its client does not read; the timer will try again
	}
	e.timer = time.AfterFunc(ackTimeout, func() { s.redeliver(e) })
}

// socketFor returns the open socket over which something that happened in a chat must be delivered. The caller
// holds s.mu.
func (s *sockets) socketFor(chat string) *socket {
	if k := s.socketByChat[chat]; k != nil && slices.Contains(s.openSockets, k) {
		return k
	}
	s.deliveryCount++
	k := s.openSockets[s.deliveryCount%len(s.openSockets)]
	if s.socketByChat != nil {
		s.socketByChat[chat] = k
	}
	return k
}

// KeepChatsTogether delivers what happens in a chat over one socket as long as that is open. Slack uses any socket,
// so the order is kept only if no socket is read a moment later than another, which a test can't demand from a busy
// machine.
func (s *Server) KeepChatsTogether() {
	s.sockets.mu.Lock()
	defer s.sockets.mu.Unlock()
	s.sockets.socketByChat = map[string]*socket{}
}

// redeliver sends an envelope that was not acknowledged in time again.
func (s *sockets) redeliver(e *envelope) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending[e.id] == e {
		s.deliver(e)
	}
}

// ack records an acknowledgement, no matter which socket it came over.
func (s *sockets) ack(id string, shown json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.acks++
	s.acked[id] = true
	if e := s.pending[id]; e != nil && e.kind == slashCommands { // Slack accepts payloads only for these
		s.shown[id] = shown
	}
	if e := s.pending[id]; e != nil {
		if e.timer != nil {
			e.timer.Stop()
		}
		delete(s.pending, id)
	}
}

// cut resets the connection of every socket, without a close frame.
func (s *sockets) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.openSockets {
		reset(k.conn.NetConn())
	}
}

// CutOneSocket resets the connection of one socket, without a close frame.
func (s *Server) CutOneSocket() {
	s.sockets.mu.Lock()
	defer s.sockets.mu.Unlock()
	if len(s.sockets.openSockets) > 0 {
		reset(s.sockets.openSockets[0].conn.NetConn())
	}
}

// CutSockets resets the connection of every socket, without a close frame.
func (s *Server) CutSockets() { s.sockets.cut() }

// Deafen makes the open sockets stop reading and writing, as if the network had lost them. The envelopes that were
// not acknowledged on them go to others.
func (s *Server) Deafen() {
	s.sockets.mu.Lock()
	open := slices.Clone(s.sockets.openSockets)
	s.sockets.mu.Unlock()
	for _, k := range open {
		k.goneOnce.Do(func() { close(k.closed) })
		s.sockets.removeSocket(k)
	}
}

// Mute makes the open sockets stop delivering anything, including Slack's pings, while they still answer the app's
// pings: as if a proxy in between had lost its own connection to Slack.
func (s *Server) Mute() {
	s.sockets.mu.Lock()
	defer s.sockets.mu.Unlock()
	for _, k := range s.sockets.openSockets {
		k.isMuted.Store(true)
	}
}

// PingEvery sets how often sockets that are opened from now on are pinged. The default is every 5 s.
func (s *Server) PingEvery(d time.Duration) {
	s.sockets.mu.Lock()
	defer s.sockets.mu.Unlock()
	s.sockets.ping = d
}

// Sockets returns how many sockets are open.
func (s *Server) Sockets() int {
	s.sockets.mu.Lock()
	defer s.sockets.mu.Unlock()
	return len(s.sockets.openSockets)
}

// Acks returns how many acknowledgements have arrived.
func (s *Server) Acks() int {
	s.sockets.mu.Lock()
	defer s.sockets.mu.Unlock()
	return s.sockets.acks
}

// Unacked returns how many envelopes have not been acknowledged.
func (s *Server) Unacked() int {
	s.sockets.mu.Lock()
	defer s.sockets.mu.Unlock()
	return len(s.sockets.pending)
}

// DropUnacked drops the envelopes that have not been acknowledged, as Slack does after its last attempt. History
// still contains the messages.
func (s *Server) DropUnacked() {
	s.sockets.mu.Lock()
	defer s.sockets.mu.Unlock()
	for _, e := range s.sockets.pending {
		if e.timer != nil {
			e.timer.Stop()
		}
	}
	clear(s.sockets.pending)
	s.sockets.waiting = nil
}

// Disconnect tells the app on every open socket that the socket will be closed, and closes it after the duration
// grace.
func (s *Server) Disconnect(reason string, grace time.Duration) {
	s.sockets.mu.Lock()
	defer s.sockets.mu.Unlock()
	for _, k := range s.sockets.openSockets {
		k.out <- fmt.Appendf(nil, `{"type":"disconnect","reason":%q}`, reason)
		time.AfterFunc(grace, func() { _ = k.conn.Close() }) // it may be closed already
	}
}

// Freeze holds envelopes back if on is true; otherwise, it sends those that were held back over the open sockets.
func (s *Server) Freeze(on bool) {
	s.sockets.mu.Lock()
	defer s.sockets.mu.Unlock()
	s.sockets.isFrozen = on
	if on {
		return
	}
	waiting := s.sockets.waiting
	s.sockets.waiting = nil
	for _, e := range waiting {
		s.sockets.deliver(e)
	}
}

// WriteFrame writes a frame to one of the sockets; false if there is none.
func (s *Server) WriteFrame(frame string) bool {
	s.sockets.mu.Lock()
	defer s.sockets.mu.Unlock()
	if len(s.sockets.openSockets) == 0 {
		return false
	}
	s.sockets.openSockets[0].out <- []byte(frame)
	return true
}

// Acked reports whether an envelope was acknowledged.
func (s *Server) Acked(envelope string) bool {
	s.sockets.mu.Lock()
	defer s.sockets.mu.Unlock()
	return s.sockets.acked[envelope]
}
