package tools

import "time"

// A Postponed is the error of a call that cannot begin now, because the device that has the tool is away. Nothing was done.
// A caller that can wait makes the call again, under the same Key, once it hears that the device is back, or when the time
// has come. For all others it is the failure that it wraps.
type Postponed struct {
	Node  string    // the name of the device
	Since time.Time // when it was lost; zero if it has never been there
	// OneOf are the names of all devices of which any would do, Node included; nil if the call is for Node alone.
	OneOf []string
	// Until is when the call is to be made again even if the device is still away. It then fails.
	Until  time.Time
	Failed *Error
}

// Error returns the text of the failure.
func (p *Postponed) Error() string { return p.Failed.Error() }

// Unwrap returns the failure.
func (p *Postponed) Unwrap() error { return p.Failed }
