package bus

// These are the types of events that are only in the server's feed. They set News, and Session if they concern a
// session.
const (
	Received        = "received"    // News.ID, Kind: a worker has received an inbound message of that kind for the session
	DeadLetterMoved = "dead_letter" // News.Topic, State, and ID if it is known: there are more or fewer dead letters
	ChannelMoved    = "channel"     // News.ID = the channel's name, State: it is up or down
	JobMoved        = "job"         // News.ID, State: a job runs, or has ended
	JobPrinted      = "job_output"  // News.ID: a running job has printed more, which is in its record now; every two seconds at most
	TaskMoved       = "task"        // News.ID, State, and Turn where it is known: a task that this session has handed to a sub-agent has changed state, or the sub-agent has made progress; without News.ID tasks were dropped
	ScheduleMoved   = "schedule"    // News.ID, State: a schedule was added, changed or removed, or a slot of it has come
)

// These are the states in a News that no other package defines.
const (
	StateRunning   = "running"   // for a turn, a job or a task
	StateWaiting   = "waiting"   // for a turn that waits for people, or a task whose turn does
	StateDone      = "done"      // for a turn
	StateFailed    = "failed"    // for a turn
	StateBuried    = "buried"    // for dead letters: there are more
	StateReplayed  = "replayed"  // for a dead letter
	StateDropped   = "dropped"   // for dead letters
	StateUp        = "up"        // for a channel
	StateDown      = "down"      // for a channel
	StateAdded     = "added"     // for a schedule
	StateChanged   = "changed"   // for a schedule
	StateCancelled = "cancelled" // for a schedule
	StateErased    = "erased"    // for tasks: their records must be erased
)

// ServerFeed names the feed that reports what happens anywhere in the fleet: turns, asks and jobs
// begin and end, and so on. It has ids, kinds and states, and never what people or models have said.
// Its events may come some hundredths of a second late, several at once, and the same may come twice.
func ServerFeed() Feed { return "server" }

// News is what the server's feed says about the subject of an event.
type News struct {
	ID    string `json:"id,omitempty"`
	Kind  string `json:"kind,omitempty"`
	State string `json:"state,omitempty"`
	Topic Topic  `json:"topic,omitempty"`
}

// IsServersOnly reports whether an event goes to the server's feed and to no other.
func (e *Event) IsServersOnly() bool {
	switch e.Type {
	case Received, DeadLetterMoved, ChannelMoved, JobMoved, JobPrinted, TaskMoved, ScheduleMoved:
		return true
	}
	return false
}

// ForServer returns the form of an event that goes to the server's feed, without anything that was said.
// It returns false if the event does not go there.
func (e *Event) ForServer() (Event, bool) {
	var n News
	switch e.Type {
	case TurnStart:
		n.State = StateRunning
	case TurnParked:
		n.State = StateWaiting
	case TurnComplete:
		n.State = StateDone
	case TurnError:
		n.State = StateFailed
		if e.Error != nil {
			n.State = e.Error.Code
		}
	case Asked, AskResolved:
		if e.Ask == nil {
			return Event{}, false
		}
		n.ID, n.Kind, n.State = e.Ask.ID, e.Ask.Kind, e.Ask.State
	case Received, DeadLetterMoved, ChannelMoved, JobMoved, JobPrinted, TaskMoved, ScheduleMoved:
		if e.News == nil {
			return Event{}, false
		}
		n = *e.News
	default:
		return Event{}, false
	}
	return Event{Type: e.Type, Session: e.Session, Turn: e.Turn, Causes: e.Causes, News: &n}, true
}

// NewDeadLetterEvent returns the event that reports that dead letters of a topic are now in that state.
// The buses emit it. key is their mailbox, and id is the dead letter's; each is "" if it is not known.
func NewDeadLetterEvent(topic Topic, key, id, state string) Event {
	e := Event{Type: DeadLetterMoved, News: &News{ID: id, State: state, Topic: topic}}
	if topic == InboundTopic {
		e.Session = key
	}
	return e
}
