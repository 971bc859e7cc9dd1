package agent

import (
	"cmp"
	"time"

	"parley/sessions/bill"
)

// Limits bounds what each person may have agents do.
type Limits struct {
	Turns     int   // how many turns may run at once; does not bind owners
	TurnsHour int   // how many turns may begin in an hour; does not bind owners
	TokensDay int64 // how many tokens may be spent or reserved in a day (UTC); binds all, owners too, who use a model without a known price
	// TokensAlways applies TokensDay to models with a known price, too.
	TokensAlways bool
	MaxWaiting   int // messages in a session's mailbox, for /status to show
	// ModelWait is how long a turn waits for a model that gives no answer, from its
	// beginning; 0 ends the turn at once.
	ModelWait time.Duration
	// The greatest cost of models, in micro-dollars: for one person in a day, in one
	// session in a day, for all in a day, and for all in a month (UTC); 0 sets no bound.
	UserDay, SessionDay, Day, Month int64
	// Own has budgets in place of TokensDay and UserDay for turns that no person has asked
	// for, by the name under which such turns are made.
	Own map[string]OwnBudget
}

// An OwnBudget bounds the turns that are made under one name.
type OwnBudget struct {
	Owner
	TokensDay, UserDay int64
}

// Caps returns the caps on money for calls that an agent makes for a person in a
// session.
func (l Limits) Caps(person, session string, a *Agent) []bill.Cap {
	var caps []bill.Cap
	userDay := l.UserDay
	if own, ok := l.Own[person]; ok {
		userDay = own.UserDay
	}
	for _, c := range []bill.Cap{
		{Of: bill.Person(person), Most: userDay}, {Of: bill.Session(session), Most: l.SessionDay},
		{Of: bill.Agent(a.Name), Most: a.Day}, {Most: l.Day}, {Month: true, Most: l.Month},
	} {
		if c.Most > 0 {
			caps = append(caps, c)
		}
	}
	return append(caps, a.Caps...)
}

// TokensPerDay returns how many tokens a person may spend in a day.
func (l Limits) TokensPerDay(person string) int64 {
	if own, ok := l.Own[person]; ok {
		return own.TokensDay
	}
	return l.TokensDay
}

// TurnsOf returns under which name the turns of an account with an agent are counted, and how many there
// may be at once and in an hour. An agent with limits of its own counts its turns by itself.
func (l Limits) TurnsOf(account string, a *Agent) (group string, atOnce, hour int) {
	if a.Turns == 0 && a.TurnsHour == 0 {
		return account, l.Turns, l.TurnsHour
	}
	return account + " " + a.Name, cmp.Or(a.Turns, l.Turns), cmp.Or(a.TurnsHour, l.TurnsHour)
}

// An Owner is whose budget it is, if it is not a person's.
type Owner struct {
	Name          string // in words, for people, in the plural; "" for a person
	MoneySetting  string // the setting of the cap on money
	TokensSetting string // the setting of the bound on tokens
}
