package tools

import "time"

// A Postponed is the error of a call that cannot begin now, because the device that has the tool is away. Nothing was
// done. A caller that can wait makes the call again, under the same Key, when it hears that the device is back, or at
// the time Until. For all other callers it is the failure that it wraps.
type Postponed struct {
	Node  string    // the name of the device
	Since time.Time // when its link was lost; zero if it was never connected
	// Alternatives are the names of all devices that could run the call, including Node; nil if only Node can.
	Alternatives []string
	// Until is when the call is to be made again even if the device is still away. It then fails.
	Until  time.Time
	Failed *Error
}

// Error returns the text of the failure.
func (p *Postponed) Error() string { return p.Failed.Error() }

// Unwrap returns the failure.
func (p *Postponed) Unwrap() error { return p.Failed }
