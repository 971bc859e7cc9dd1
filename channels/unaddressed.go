package channels

import (
	"sync/atomic"

	"parley/bus"
)

// An UnaddressedTeller reports the messages in groups that it does not pass on because they are not meant for the
// bot, so that operators can find out why a message was not answered.
type UnaddressedTeller interface {
	// TellUnaddressed sets f to be called with the id and the address of each such message. f must not block.
	TellUnaddressed(f func(id string, at bus.Address))
}

// AsUnaddressedTeller returns the channel as an UnaddressedTeller; false if it isn't one.
func AsUnaddressedTeller(ch Channel) (UnaddressedTeller, bool) { return ability[UnaddressedTeller](ch) }

// An Unaddressed is an UnaddressedTeller for channels to embed. Its zero value reports to nobody.
type Unaddressed struct {
	tell atomic.Pointer[func(id string, at bus.Address)]
}

// TellUnaddressed implements UnaddressedTeller.
func (u *Unaddressed) TellUnaddressed(f func(id string, at bus.Address)) { u.tell.Store(&f) }

// Note reports a message that is not passed on.
func (u *Unaddressed) Note(id string, at bus.Address) {
	if f := u.tell.Load(); f != nil {
		(*f)(id, at)
	}
}
